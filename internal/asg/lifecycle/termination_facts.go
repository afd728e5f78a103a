package lifecycle

import (
	"cmp"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Status is how the termination of an instance stands, as it is written down.
type Status = v1alpha1.AnswerStatus

// Seen is what was last seen of the instance in its group.
type Seen struct {
	// Time is when the group was read; zero: it was not.
	Time time.Time
	// Group is its name, and State the lifecycle state; empty where the instance is
	// not in it.
	Group, State string
	// Hooks are those of terminations; HooksKnown tells whether they are all.
	Hooks      []Hook
	HooksKnown bool
}

// TerminationFacts are what a decision about a drained instance is made from.
type TerminationFacts struct {
	Now        time.Time
	InstanceID string
	// Notices are those that count.
	Notices []v1alpha1.Notice
	// Was is how it stood when last written down, or nil.
	Was  *Status
	Seen Seen
	// Owns tells whether Lifeboat completes a hook that only an event has named.
	Owns func(hook string) bool
	// Retain is whether what is not drained in time has to be retained.
	Retain bool
	// Action is what policy says; Deadline, by when.
	Action   v1alpha1.Action
	Deadline *v1alpha1.Deadline
	// Drained is whether nothing on the node is needed any more.
	Drained bool
}

// TerminationDecision is what the hooks of a drained instance are sent, and how it
// stands.
type TerminationDecision struct {
	Call
	// Status is nil where there is nothing to report.
	Status *Status
	// Pending is whether the instance is, or is about to be, held by a hook that
	// Lifeboat has yet to complete.
	Pending bool
	// Look asks for the group to be read soon.
	Look bool
}

// firing is what the notices say of the hook that holds the instance.
type firing struct {
	any     bool // the group is taking the instance away
	group   string
	returns bool
	tokens  map[string]string // by hook
	// at is when the last firing of a hook of ours was issued, and received when it
	// was recorded; zero: none is known.
	at, received time.Time
}

// isTaken reports whether a notice says that the group takes the instance away. A
// drill says nothing of a hook.
func isTaken(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindAutoScalingTermination && !n.Withdrawn && !n.Drill
}

// read gathers what the notices say. What an agent says of a hook is ignored: an agent
// must not have the hooks of others completed.
func (f *TerminationFacts) read() firing {
	w := firing{tokens: map[string]string{}}
	var newest time.Time
	for _, n := range f.Notices {
		if !isTaken(n) {
			continue
		}
		w.any = true
		if n.InstanceAction == notice.ActionReturn && f.leavesPool() {
			continue // it was on its way there, and is on its way out by now
		}
		if !n.ReceivedTime.Time.Before(newest) {
			newest, w.returns = n.ReceivedTime.Time, n.InstanceAction == notice.ActionReturn
		}
		if n.Hook == nil || n.Source == notice.SourceIMDS {
			continue
		}
		w.group = cmp.Or(n.Hook.Group, w.group)
		if n.Hook.Token == "" || !f.Owns(n.Hook.Name) || n.ReceivedTime.Time.Before(w.received) {
			continue
		}
		w.tokens[n.Hook.Name] = n.Hook.Token
		w.received, w.at = n.ReceivedTime.Time, n.Time.Time
		if w.at.IsZero() {
			w.at = w.received
		}
	}
	return w
}

// leavesPool reports whether the instance was seen on its way out of the warm pool.
func (f *TerminationFacts) leavesPool() bool {
	return !f.Seen.Time.IsZero() && Read(f.Seen.State).Phase == LeavingPool
}

// stands reads the state. While an event is newer than the state, or the state is
// on its way, the event is believed: Auto Scaling sends it when a hook begins to
// hold the instance.
func (f *TerminationFacts) stands(w firing) Stand {
	at := f.Seen.stand(w.returns)
	switch {
	case len(w.tokens) == 0, at == Held, at == Past && f.Seen.Time.After(w.received):
		return at
	case at == Before, !f.Seen.Time.After(w.received):
		return Held
	}
	return at
}

// stand is where the state has the instance on its way out, or back into its warm pool.
func (s Seen) stand(returns bool) Stand {
	p := Read(s.State)
	switch {
	case s.Time.IsZero():
		return Unseen
	case s.State == "", p.Phase == Gone, p.Phase == Retained:
		return Past
	case p.Phase == LeavingPool:
		return p.On(LeavingPool, Gone)
	case returns && (p.Phase == Warming || p.Phase == Warm):
		return p.On(Warming, Warm)
	}
	return p.On(Leaving, Gone)
}

// Returns reports whether the instance is going back to its warm pool, or is there.
// A late event of an instance that serves by now does not count.
func Returns(f TerminationFacts) bool {
	w := f.read()
	return w.any && w.returns && f.stands(w) != Elsewhere && (f.Seen.State != "" || f.Seen.Time.IsZero())
}
