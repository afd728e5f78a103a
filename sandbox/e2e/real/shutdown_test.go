//go:build e2e

package real

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// longHook is long enough for a successor to start while it runs.
	longHook = 30 * time.Second
	// halt limits how long a node without running pods may take to power off. It is less than the
	// time after which the emulator powers an instance off without its kubelet.
	halt = 2 * time.Minute
)

// TestTerminatedInstance terminates an instance as a user does, without a warning. Its operating
// system shuts down first, and its kubelet stops the pods. Lifeboat receives the shutting-down
// state and evicts the pods: their successors start while they still run.
func TestTerminatedInstance(t *testing.T) {
	s := needWorld(t)
	w := web{Name: "terminated", Replicas: 1, PreStop: longHook, Grace: 60}
	interrupted := s.interrupted(w.pool())
	old := s.place(w, interrupted)
	warned, off := s.terminate(interrupted)
	if got := s.waitRecord(interrupted.ID, 20*time.Second).Spec.Notices[0]; got.Kind != notice.KindInstanceStateChange {
		t.Errorf("received a notice of kind %s", got.Kind)
	}
	s.checkEnds(w, old, warned, off, overlaps)
}

// terminatedAlone is the twin without Lifeboat: the kubelet gives the pod the same time, but its
// successor starts only after the pod has ended.
func terminatedAlone(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	w := web{Name: "alone-terminated", Replicas: 1, PreStop: longHook, Grace: 60}
	interrupted := s.interrupted(w.pool())
	old := s.place(w, interrupted)
	warned, off := s.terminate(interrupted)
	s.until("the successor to be Ready", 3*time.Minute, func(ctx context.Context) (bool, error) {
		pods, err := s.pods(ctx, w.Name)
		for i := range pods {
			if p := &pods[i]; p.Name != old[0] && isReady(p) {
				return true, nil
			}
		}
		return false, errors.Join(err, errors.New(states(pods)))
	})
	s.checkEnds(w, old, warned, off, follows)
}

// terminate ends an instance as a user does. It returns when, and when its power went off.
func (s *stage) terminate(in ec2.Instance) (warned, off time.Time) {
	s.t.Helper()
	warned = time.Now()
	if _, err := s.EC2().Terminate([]string{in.ID}); err != nil {
		s.t.Fatal(err)
	}
	return warned, s.waitPowerOff(in, halt)
}

// checkEnds checks the ends of a server's pods, each with its successors.
func (s *stage) checkEnds(w web, old []string, warned, off time.Time, judge func(old podJournal, fresh []podJournal) error) {
	s.t.Helper()
	fresh := s.otherJournals(w.Name, old)
	for _, l := range s.readJournals(old) {
		s.check(l.whole(w.PreStop, off), judge(l, fresh))
		s.t.Logf("FIGURES %s: %s asked %s, hook whole %s, SIGTERM %s, power off %s", s.t.Name(), l.Pod,
			since(warned, l.HookBegin), since(warned, l.HookEnd), since(warned, l.SIGTERM), since(warned, off))
	}
	for _, l := range fresh {
		s.t.Logf("FIGURES %s: successor %s started %s, ready %s", s.t.Name(), l.Pod, since(warned, l.Started), since(warned, l.Ready))
	}
}

// overlaps checks that a successor was ready while the old pod still ran its hook.
func overlaps(old podJournal, fresh []podJournal) error {
	for _, l := range fresh {
		if !l.Ready.IsZero() && l.Ready.Before(old.HookEnd) {
			return nil
		}
	}
	return fmt.Errorf("%s: its hook ended at %s, and none of %d successors was ready before that", old.Pod, clock(old.HookEnd), len(fresh))
}

// follows checks that there is a successor and that none started before the old pod got SIGTERM.
func follows(old podJournal, fresh []podJournal) error {
	if len(fresh) == 0 {
		return fmt.Errorf("%s has no successor", old.Pod)
	}
	for _, l := range fresh {
		if l.Started.Before(old.SIGTERM) {
			return fmt.Errorf("%s started at %s, before SIGTERM came to %s at %s", l.Pod, clock(l.Started), old.Pod, clock(old.SIGTERM))
		}
	}
	return nil
}
