package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// began is when the tests begin.
var began = time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)

// launchHook and terminateHook are Lifeboat's own.
var (
	launchHook    = lifecycle.Hook{Name: "lifeboat-launch", Own: true, Timeout: 10 * time.Minute, Global: 1000 * time.Minute}
	terminateHook = lifecycle.Hook{Name: "lifeboat-terminate", Own: true, Terminating: true, Timeout: 5 * time.Minute, Global: 500 * time.Minute}
)

// scenario is an instance over time: it is seen, decided about, and the hooks of the test are
// called.
type scenario struct {
	*testing.T
	lifecycle.Facts
	memory lifecycle.Memory
}

func begin(t *testing.T) *scenario {
	t.Helper()
	return &scenario{T: t, Facts: lifecycle.Facts{
		Now: began, InstanceID: "i-0a1b2c3d4e5f60718", Pool: true, Patience: 30 * time.Minute,
		Hooks: []lifecycle.Hook{launchHook, terminateHook}, HooksKnown: true,
	}}
}

// launched is a new instance in a state.
func launched(t *testing.T, state string) *scenario {
	t.Helper()
	s := begin(t)
	s.State, s.At, s.Seen = state, lifecycle.Read(state), s.Now
	s.memory = s.memory.See(s.Now, s.At, true).WithNode(s.Now, false)
	return s
}

// after lets time pass, and then sees the instance in a state.
func (s *scenario) after(d time.Duration, state string) *scenario {
	s.Now = s.Now.Add(d)
	s.State, s.At, s.Seen = state, lifecycle.Read(state), s.Now
	s.memory = s.memory.See(s.Now, s.At, false).WithNode(s.Now, s.Node != nil)
	return s
}

// node gives it a node, created and reported now.
func (s *scenario) node(ready bool) *scenario {
	s.Node = &lifecycle.Node{Created: s.Now, Heartbeat: s.Now, Ready: ready, Tainted: true}
	s.memory = s.memory.WithNode(s.Now, true)
	return s
}

func (s *scenario) noNode() *scenario {
	s.Node = nil
	s.memory = s.memory.WithNode(s.Now, false)
	return s
}

func (s *scenario) decide() lifecycle.Decision {
	d := lifecycle.Decide(s.Facts, s.memory)
	s.memory.Reason = d.Reason
	if d.Do == lifecycle.GiveUp {
		s.memory.GaveUp = true
	}
	return d
}

// does checks the decision, such as "Complete lifeboat-launch" or "Untaint" or both, and that
// the reason contains a text.
func (s *scenario) does(want, says string) lifecycle.Decision {
	s.Helper()
	d := s.decide()
	got := strings.TrimSpace(strings.Join(append([]string{string(d.Do)}, d.Hooks...), " ") + " " + string(d.Node))
	if got != want || !strings.Contains(d.Reason, says) {
		s.Errorf("%s, %s: got %q (%s), want %q (… %s …)", s.Now.Format(time.TimeOnly), s.State, got, d.Reason, want, says)
	}
	return d
}

// call calls the hooks of the decision, with this outcome.
func (s *scenario) call(d lifecycle.Decision, outcome error) {
	s.Helper()
	if len(d.Hooks) == 0 {
		s.Fatalf("%s, %s: no hook is called: %+v", s.Now.Format(time.TimeOnly), s.State, d)
	}
	for _, h := range d.Hooks {
		s.memory = s.memory.RecordCall(h, s.Now, d.Do, outcome)
	}
}

var (
	accepted   error
	errRefused = fmt.Errorf("completing: %w", cloud.ErrNoAction)
	errBusy    = fmt.Errorf("completing: %w", cloud.ErrBusy)
	denied     = &cloud.DeniedError{Err: errors.New("AccessDenied"), Fix: "allow autoscaling:CompleteLifecycleAction"}
)

// passes lets time pass in the same state, second by second, makes the decided calls, and
// returns them with their times.
func (s *scenario) passes(d time.Duration, outcome error) (did []string, at []time.Duration) {
	from := s.Now
	for end := s.Now.Add(d); s.Now.Before(end); s.after(time.Second, s.State) {
		if made := s.decide(); made.Do != lifecycle.Nothing {
			did, at = append(did, string(made.Do)), append(at, s.Now.Sub(from))
			if len(made.Hooks) > 0 {
				s.call(made, outcome)
			}
		}
	}
	return did, at
}

func count(did []string, what lifecycle.Verb) int {
	return len(slices.DeleteFunc(slices.Clone(did), func(d string) bool { return d != string(what) }))
}
