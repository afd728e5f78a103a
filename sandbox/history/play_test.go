//go:build e2e || soak

package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
	"github.com/lifeboat-dev/lifeboat/sandbox/observer"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

const (
	// sandboxes is how many play at the same time. They mostly wait for their clocks.
	sandboxes = 3
	// shrinkTries is how many histories are played to shorten a failing one.
	shrinkTries = 12
	// faultDelay is how much later the faults of a history may make what must happen; with two replicas
	// a new leader also waits for the Lease.
	faultDelay = 25 * time.Second
	leaseDelay = 15 * time.Second
)

// inCI are the seeds of `make e2e`, by sandbox: together about five minutes. A commit fails for its own
// defects, so they are always the same. Each has a spot warning, which stops pods under any policy.
var inCI = [sandboxes][]uint64{{11, 22}, {17, 25}, {34, 20}}

// TestHistories plays the histories of inCI. `make histories` plays LIFEBOAT_HISTORIES of random seeds.
// LIFEBOAT_HISTORY_SEED plays one history again.
func TestHistories(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	lifeboatd, err := program.Lifeboatd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	next, players := seeds(t)
	var playing sync.WaitGroup
	for i := range players {
		replicas := 1 + i%2
		playing.Go(func() {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				p := newPlayer(t, lifeboatd, replicas)
				for {
					seed, ok := next(i)
					if !ok {
						return
					}
					t.Run(fmt.Sprint(seed), func(t *testing.T) { playRandom(t, p, seed) })
				}
			})
		})
	}
	playing.Wait()
}

// seeds returns the next seed of each sandbox, and on how many to play.
func seeds(t *testing.T) (next func(sandbox int) (uint64, bool), players int) {
	t.Helper()
	number := func(name string) (uint64, bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n, true
	}
	var given atomic.Uint64
	if seed, ok := number("LIFEBOAT_HISTORY_SEED"); ok {
		return func(int) (uint64, bool) { return seed, given.Add(1) == 1 }, 1
	}
	if count, ok := number("LIFEBOAT_HISTORIES"); ok {
		return func(int) (uint64, bool) { return rand.Uint64N(1 << 32), given.Add(1) <= count }, sandboxes
	}
	left := inCI // each sandbox changes its own element
	return func(i int) (uint64, bool) {
		if len(left[i]) == 0 {
			return 0, false
		}
		seed := left[i][0]
		left[i] = left[i][1:]
		return seed, true
	}, sandboxes
}

// skipped are faults that random histories do not have, with the reason.
var skipped = map[string]string{
	"freeze-control-plane": "the audit log has requests that were frozen, with times that no client saw",
}

func newPlayer(t *testing.T, lifeboatd string, replicas int, args ...string) *Player {
	t.Helper()
	var up time.Duration
	options := sandbox.Options{
		Name: "history", Dir: filepath.Join(t.TempDir(), "s"), Lifeboatd: lifeboatd, Chaos: true, Replicas: replicas,
		BootDelay: 200 * time.Millisecond, DeliverySeed: rand.Uint64() | 1, LifeboatdArgs: append([]string{"--sources=sqs,ec2"}, args...),
		Progress: func(s sandbox.Step) {
			if s.Done && s.Name != "programs" {
				up += s.Took
			}
		},
	}
	seen, err := observer.New(t.TempDir(), &options)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := sandbox.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(); err != nil {
			t.Error(err)
		}
	})
	if err := sb.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen.Connect(sb)
	factor := timelimit.Factor(up)
	delay := timelimit.Stretch(10*time.Second, factor) + faultDelay + time.Duration(replicas-1)*leaseDelay
	t.Logf("the sandbox came up in %s: what must happen may be %s late", up.Round(time.Millisecond), delay.Round(time.Second))
	return &Player{Sandbox: sb, Observer: seen, Delay: delay, Stretch: func(sc *scenario.Scenario) {
		for i, step := range sc.Steps {
			switch do := step.Do.(type) {
			case scenario.CheckStatement:
				do.Within = timelimit.Stretch(do.Within, factor)
				sc.Steps[i].Do = do
			}
		}
	}}
}

func playRandom(t *testing.T, p *Player, seed uint64) {
	h := Random(seed, menu(t, p, skipped), 1)
	t.Logf("LIFEBOAT_HISTORY_SEED=%d repeats this history", seed)
	if !fails(t, p, h) {
		return
	}
	t.Errorf("seed %d breaks promises", seed)
	if os.Getenv("LIFEBOAT_SHRINK") == "" {
		t.Logf("LIFEBOAT_SHRINK=1 makes it shorter. The history:\n%s", h.Scenario())
		return
	}
	short := Shrink(h, shrinkTries, func(h History) bool { return fails(t, p, h) })
	t.Logf("shortened:\n%s", short.Scenario())
}

func menu(t *testing.T, p *Player, skipped map[string]string) (names []string) {
	t.Helper()
	target, err := chaos.Open(p.Sandbox.State().Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range target.Supported() {
		if skipped[f.Name] == "" {
			names = append(names, f.Name)
		}
	}
	return names
}

// fails plays a history, and reports whether it breaks a promise.
func fails(t *testing.T, p *Player, h History) bool {
	t.Helper()
	var timeline strings.Builder
	began := time.Now()
	got, err := p.Play(t.Context(), fmt.Sprintf("seed-%d", h.Seed), h.Scenario(), func(m scenario.Moment) {
		fmt.Fprintf(&timeline, "%s %s %s\n", m.Time.Format("15:04:05.000"), m.Node, m.Text)
	})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s\n%s", h.Seed, err, h.Scenario(), timeline.String())
	}
	t.Logf("judged %d writes, %d pods, %d requests to stop, %d Interruptions after %s", got.Writes, got.Pods, got.Asks, got.Records, time.Since(began).Round(time.Second))
	for _, v := range got.Violations {
		t.Logf("broken promise: %s", v)
	}
	if len(got.Violations) > 0 {
		t.Logf("what happened:\n%s", timeline.String())
	}
	return len(got.Violations) > 0
}
