package lifecycle

import (
	"cmp"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Status is the progress of an instance's termination, as stored in the record.
type Status = v1beta1.LifecycleHooksStatus

// Seen is the last read state of the instance in its group.
type Seen struct {
	// Time is when the group was read; zero: it was not.
	Time time.Time
	// Group is its name, and State the lifecycle state; empty if the instance is not in it.
	Group, State string
	// Hooks are its hooks for terminations; HooksKnown is set if they are complete.
	Hooks      []Hook
	HooksKnown bool
}

// TerminationFacts are the input of a decision about a drained instance.
type TerminationFacts struct {
	Now        time.Time
	InstanceID string
	// Notices are the valid notices.
	Notices []v1beta1.Notice
	// Was is the last stored status, or nil.
	Was  *Status
	Seen Seen
	// Owns reports whether Lifeboat completes a hook that only an event has named.
	Owns func(hook string) bool
	// Retain is set if an instance that is not drained in time must be retained.
	Retain bool
	// Action is the policy's action; Deadline is its deadline.
	Action   v1beta1.Action
	Deadline *v1beta1.Deadline
	// Drained is set if nothing on the node is needed any more.
	Drained bool
	// Due is when the controller of the drain last confirmed that the hooks can be completed;
	// zero: it did not.
	Due time.Time
}

// TerminationDecision is the call for the hooks of a drained instance, and the new status.
type TerminationDecision struct {
	Call
	// Status is nil if there is nothing to report.
	Status *Status
	// Pending is set if a hook that Lifeboat has yet to complete holds the instance, or is
	// about to.
	Pending bool
	// Look requests a refresh of the group.
	Look bool
	// Confirm is set if the hooks must be completed now, and the controller of the drain has yet
	// to confirm that they can be.
	Confirm bool
}

// firing is what the notices say about the hook that holds the instance.
type firing struct {
	any     bool // the group terminates the instance
	group   string
	returns bool
	newest  time.Time         // when the last notice was recorded
	tokens  map[string]string // by hook
	// at is when the last firing of a hook of Lifeboat's was issued, and received when it was
	// recorded; zero: unknown.
	at, received time.Time
}

// isTaken reports whether a notice says that the group terminates the instance. A drill has no
// hook.
func isTaken(n v1beta1.Notice) bool {
	return n.Kind == notice.KindAutoScalingTermination && !n.Withdrawn && !n.Drill
}

// read combines the notices. Hooks that only an agent names are ignored: an agent must not cause
// the completion of other hooks.
func (f *TerminationFacts) read() firing {
	w := firing{tokens: map[string]string{}}
	for _, n := range f.Notices {
		if !isTaken(n) {
			continue
		}
		w.any = true
		if n.InstanceAction == notice.ActionReturn && f.leavesPool() {
			continue // it was on its way into the pool, and is on its way out by now
		}
		if !n.ReceivedTime.Time.Before(w.newest) {
			w.newest, w.returns = n.ReceivedTime.Time, n.InstanceAction == notice.ActionReturn
		}
		if n.LifecycleHook == nil || n.Source == notice.SourceIMDS {
			continue
		}
		w.group = cmp.Or(n.LifecycleHook.Group, w.group)
		if n.LifecycleHook.Token == "" || !f.Owns(n.LifecycleHook.Name) || n.ReceivedTime.Time.Before(w.received) {
			continue
		}
		w.tokens[n.LifecycleHook.Name] = n.LifecycleHook.Token
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

// stands evaluates the state. An event that is newer than the state, or than a transitional
// state, takes precedence: Auto Scaling sends it when a hook begins to hold the instance.
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

// stand is the progress of the instance on its way out, or back into its warm pool.
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

// Returns reports whether the instance returns to its warm pool, or is there. Only the group's own
// state proves that: anyone who can send a notice could have the Node deleted otherwise.
func Returns(f TerminationFacts) bool {
	w, phase := f.read(), Read(f.Seen.State).Phase
	return w.any && w.returns && !f.Seen.Time.IsZero() && (phase == Warming || phase == Warm)
}

// MayReturn reports whether a notice says that the instance returns to its warm pool, and the
// group's state is older than the notice.
func MayReturn(f TerminationFacts) bool {
	w := f.read()
	return w.any && w.returns && !f.Seen.Time.IsZero() && !f.Seen.Time.After(w.newest)
}
