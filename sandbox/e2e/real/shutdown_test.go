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
	// longHook is long enough that a successor starts while it runs.
	longHook = 30 * time.Second
	// halt is within which a node halts whose pods have stopped. It is less than the time
	// after which the instance no longer waits for its kubelet.
	halt = 2 * time.Minute
)

// TestTerminatedInstance: the user terminates an instance, without a warning. Its operating
// system shuts down first, and its kubelet stops the pods. Lifeboat hears that the instance
// is shutting down, and evicts them: their successors start while they still run.
func TestTerminatedInstance(t *testing.T) {
	s := needWorld(t)
	w := web{Name: "terminated", Replicas: 1, PreStop: longHook, Grace: 60}
	interrupted := s.interrupted(w.pool())
	old := s.place(w, interrupted)
	told, off := s.terminate(interrupted)
	if got := s.heard(interrupted.ID, 20*time.Second).Spec.Notices[0]; got.Kind != notice.KindInstanceStateChange {
		t.Errorf("received a notice of kind %s", got.Kind)
	}
	s.ended(w, old, told, off, overlaps)
}

// terminatedAlone is the twin without Lifeboat: the kubelet gives the pod the same time, and
// its successor starts only when it has ended.
func terminatedAlone(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	w := web{Name: "alone-terminated", Replicas: 1, PreStop: longHook, Grace: 60}
	interrupted := s.interrupted(w.pool())
	old := s.place(w, interrupted)
	told, off := s.terminate(interrupted)
	s.until("the successor to be Ready", 3*time.Minute, func(ctx context.Context) (bool, error) {
		pods, err := s.pods(ctx, w.Name)
		for i := range pods {
			if p := &pods[i]; p.Name != old[0] && isReady(p) {
				return true, nil
			}
		}
		return false, errors.Join(err, errors.New(states(pods)))
	})
	s.ended(w, old, told, off, follows)
}

// terminate ends an instance as a user does, and returns when, and when its power went.
func (s *stage) terminate(in ec2.Instance) (told, off time.Time) {
	s.t.Helper()
	told = time.Now()
	if _, err := s.EC2().Terminate([]string{in.ID}); err != nil {
		s.t.Fatal(err)
	}
	return told, s.dark(in, halt)
}

// ended judges the end of a server's pods, each with its successors.
func (s *stage) ended(w web, old []string, told, off time.Time, judge func(old life, fresh []life) error) {
	s.t.Helper()
	fresh := s.others(w.Name, old)
	for _, l := range s.lives(old) {
		s.holds(l.whole(w.PreStop, off), judge(l, fresh))
		s.t.Logf("FIGURES %s: %s asked %s, hook whole %s, SIGTERM %s, power off %s", s.t.Name(), l.Pod,
			since(told, l.HookBegin), since(told, l.HookEnd), since(told, l.SIGTERM), since(told, off))
	}
	for _, l := range fresh {
		s.t.Logf("FIGURES %s: successor %s started %s, ready %s", s.t.Name(), l.Pod, since(told, l.Started), since(told, l.Ready))
	}
}

// overlaps says what is wrong where no successor was ready while the old one still ran its
// hook.
func overlaps(old life, fresh []life) error {
	for _, l := range fresh {
		if !l.Ready.IsZero() && l.Ready.Before(old.HookEnd) {
			return nil
		}
	}
	return fmt.Errorf("%s: its hook ended at %s, and none of %d successors was ready before", old.Pod, clock(old.HookEnd), len(fresh))
}

// follows says what is wrong where a successor started before the old one was told to end,
// or none did.
func follows(old life, fresh []life) error {
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
