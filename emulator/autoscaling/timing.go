package autoscaling

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/replica"
)

// Timing is how long a group with a template takes for its automatic steps. A duration of zero
// takes the default, which is much shorter than on AWS. [ec2.Timing] has the timing of EC2, such as
// booting and stopping.
type Timing struct {
	Evaluate time.Duration // from a change to the group's reaction; default 50 ms
	Launch   time.Duration // from running at EC2 to Pending:Wait; default 100 ms
	Settle   time.Duration // in :Proceed before the lasting state, in Detaching and EnteringStandby; default 50 ms
	Retry    time.Duration // from a failed launch to the next attempt; default 2 s
	// Deregister is how long instances stay in Terminating before hooks are notified, for groups
	// that do not set it; default none.
	Deregister time.Duration
}

func (t Timing) withDefaults() Timing {
	return Timing{
		Evaluate:   cmp.Or(t.Evaluate, 50*time.Millisecond),
		Launch:     cmp.Or(t.Launch, 100*time.Millisecond),
		Settle:     cmp.Or(t.Settle, 50*time.Millisecond),
		Retry:      cmp.Or(t.Retry, 2*time.Second),
		Deregister: t.Deregister,
	}
}

// SetTiming changes the timing of work that starts from now on.
func (s *State) SetTiming(t Timing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timing = t.withDefaults()
}

// Consistency is the delay between the state and what calls show. The zero value is no delay.
type Consistency struct {
	// Lag is the age of the states, and of the membership, that Describe calls show.
	Lag time.Duration
	// Random draws the age for each instance in each call, up to Lag; nil: it is always Lag. The
	// state uses it under its lock.
	Random *rand.Rand
	// TargetAfter is how long after its launch an instance's metadata has no target state: 404.
	TargetAfter time.Duration
	// ActionAfter is how long after the start of a :Wait state, and after the event, a completion
	// fails with "No active Lifecycle Action".
	ActionAfter time.Duration
}

func (c Consistency) lag() replica.Lag { return replica.Lag{Most: c.Lag, Random: c.Random} }

// SetConsistency changes the delay of what calls show.
func (s *State) SetConsistency(c Consistency) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consistency = c
	s.past.SetLag(c.lag())
}

// Contend makes the next n mutating calls fail, or all if n is negative, with ResourceContention:
// "You already have a pending update to an Amazon EC2 Auto Scaling resource" (Amazon EC2 Auto
// Scaling API Reference, Errors).
func (s *State) Contend(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contention = n
}

// isContended reports whether a call fails with ResourceContention.
func (s *State) isContended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contention > 0 {
		s.contention--
		return true
	}
	return s.contention < 0
}
