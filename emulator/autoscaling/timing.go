package autoscaling

import (
	"cmp"
	"time"
)

// Timing is how long a living group takes for what it does by itself. A duration of zero
// takes the default, which is much shorter than on AWS. EC2's part, such as booting and
// stopping, is in [ec2.Timing].
type Timing struct {
	Evaluate time.Duration // from a change to what the group does about it; default 50 ms
	Launch   time.Duration // from running at EC2 to Pending:Wait; default 100 ms
	Settle   time.Duration // in :Proceed before the lasting state, in Detaching and EnteringStandby; default 50 ms
	Retry    time.Duration // from a launch that failed to the next; default 2 s
	// Deregister is how long instances stay in Terminating before hooks are told, for
	// groups that do not say it themselves; default none.
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

// SetTiming changes the timing of what begins from now on.
func (s *State) SetTiming(t Timing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timing = t.withDefaults()
}

// Consistency is how far what is told lags behind what is. The zero value is none of it.
type Consistency struct {
	// Lag is how old the states, and the membership, of instances are in what the
	// Describe calls show.
	Lag time.Duration
	// TargetAfter is how long after its launch an instance's metadata has no target
	// state: 404.
	TargetAfter time.Duration
	// ActionAfter is how long after a :Wait state began, and the event was sent, there
	// is "No active Lifecycle Action" for those who want to complete it.
	ActionAfter time.Duration
}

// SetConsistency changes how far what is told lags behind.
func (s *State) SetConsistency(c Consistency) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consistency = c
}

// Contend answers the next n calls that change something, or all if n is negative, with
// ResourceContention: "You already have a pending update to an Amazon EC2 Auto Scaling
// resource" (Amazon EC2 Auto Scaling API Reference, Errors).
func (s *State) Contend(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contention = n
}

// contends tells whether a call is to be answered so.
func (s *State) contends() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contention > 0 {
		s.contention--
		return true
	}
	return s.contention < 0
}
