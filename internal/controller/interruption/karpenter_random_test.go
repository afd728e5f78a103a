package interruption

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// The test runs random sequences: Karpenter launches, boots, gives up, deletes the interrupted
// node on its own, or is down; the process is killed at any write. There must never be more than
// one replacement. Each pod must be asked to stop by its last call. In the end no replacement may be
// protected or pending.
func TestRandomKarpenterBehaviour(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	var kills, ordered, ready uint64
	for seed := range seeds {
		k := withKarpenter(t, recordOf(spot()), sized("web-1"), sized("web-2"))
		s := &karpenterRun{karpenter: k, dice: rand.New(rand.NewPCG(seed, 7)), seed: seed}
		s.simulate()
		kills += s.kills
		if r := record.Drain(&s.record().Status).Replacement; r != nil && r.Tries > 0 {
			ordered++
			if r.ReadyTime != nil {
				ready++
			}
		}
	}
	t.Logf("%d runs: %d kills, %d replacements ordered, %d ready", seeds, kills, ordered, ready)
	if kills < seeds || ordered < seeds/2 || ready < seeds/8 {
		t.Error("too little happened for the test to mean anything")
	}
}

type karpenterRun struct {
	*karpenter
	dice  *rand.Rand
	seed  uint64
	kills uint64
}

func (s *karpenterRun) simulate() {
	s.loop.Forward = s.forward
	for s.now.Sub(start) < 3*time.Minute {
		if s.lives == nil && s.dice.IntN(6) == 0 {
			n := s.dice.IntN(5)
			s.lives = &n
		}
		err := s.pass(time.Duration(s.dice.IntN(4000)) * time.Millisecond)
		if err != nil && s.lives != nil && *s.lives < 0 {
			s.kills++
			s.restart()
			s.loop.Forward = s.forward
			_ = s.pass(0)
		} else if err != nil && !s.absent {
			s.t.Fatalf("seed %d: %v", s.seed, err)
		}
		s.withoutKills(s.others)
		s.check()
	}
	s.withoutKills(func() {
		s.absent = false
		for name := range s.asked {
			s.gone(name)
		}
		if n := s.node(); n != nil {
			s.remove(n)
		}
	})
	s.lives = nil
	s.settle(15 * time.Minute)
	if in := s.record(); in == nil || in.Status.CompletionTime == nil || s.protected() {
		s.t.Fatalf("seed %d: protected %v, record %+v", s.seed, s.protected(), in.Status)
	}
	if c := s.claim(ourClaim); c != nil && !isLaunched(c.Object) {
		s.t.Fatalf("seed %d: a replacement is left without an instance", s.seed)
	}
}

func isLaunched(o map[string]any) bool {
	status, _ := o["status"].(map[string]any)
	id, _ := status["providerID"].(string)
	return id != ""
}

// forward is Karpenter's queue, which is unreachable at times.
func (s *karpenterRun) forward(_ context.Context, text string) error {
	if s.dice.IntN(3) == 0 {
		return errors.New("the queue is unreachable")
	}
	s.forwarded = append(s.forwarded, text)
	return nil
}

// others is what Karpenter and the kubelet do at the same time.
func (s *karpenterRun) others() {
	c := s.claim(ourClaim)
	switch s.dice.IntN(12) {
	case 0, 1, 2:
		if c != nil && !isLaunched(c.Object) {
			s.launch()
		}
	case 3, 4:
		var n corev1.Node
		if c != nil && isLaunched(c.Object) && s.client.Get(s.t.Context(), client.ObjectKey{Name: "new"}, &n) != nil {
			s.boot()
		}
	case 5:
		if c != nil && !isLaunched(c.Object) {
			s.giveUp()
		}
	case 6:
		if interrupted := s.claim("web-x7k2p"); interrupted != nil && s.dice.IntN(10) == 0 {
			s.remove(interrupted)
		}
	case 7:
		s.absent = s.dice.IntN(4) == 0
	case 8, 9:
		for name, at := range s.asked {
			if s.now.Sub(at) > 5*time.Second {
				s.gone(name)
			}
		}
	}
}

// gone is stopped for a pod that may be gone already.
func (s *karpenterRun) gone(name string) {
	var p corev1.Pod
	if s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &p) == nil && p.Spec.NodeName == "a" {
		s.stopped(name)
	}
}

// check checks the invariants.
func (s *karpenterRun) check() {
	if n := len(s.Claims()); n > 1 {
		s.t.Fatalf("seed %d: %d replacements", s.seed, n)
	}
	in := s.record()
	if r := record.Drain(&in.Status).Replacement; r != nil && r.Tries > replacement.MostTries {
		s.t.Fatalf("seed %d: ordered %d times", s.seed, r.Tries)
	}
	lastCall := start.Add(2*time.Minute - 40*time.Second)
	if s.now.Sub(lastCall) > 15*time.Second && s.now.Before(start.Add(2*time.Minute)) {
		for _, name := range []string{"web-1", "web-2"} {
			if _, asked := s.asked[name]; !asked && !slices.Contains(s.evictions, name) {
				s.t.Fatalf("seed %d: %s was not asked to stop by %s: %+v", s.seed, name, s.now.Sub(start), record.Pending(record.Drain(&in.Status)))
			}
		}
	}
	if h := record.Drain(&in.Status).NodeClaimDeletion; h != nil && h.DeletedTime != nil && s.now.Before(start.Add(109*time.Second)) && waits(in) {
		s.t.Fatalf("seed %d: handed over while pods wait: %+v", s.seed, record.Pending(record.Drain(&in.Status)))
	}
}

func waits(in *v1beta1.Interruption) bool {
	return slices.ContainsFunc(record.Pending(record.Drain(&in.Status)), func(p v1beta1.PodStatus) bool { return p.State == v1beta1.PodWaiting })
}
