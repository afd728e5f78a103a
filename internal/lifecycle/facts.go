package lifecycle

import "time"

// Hook is a lifecycle hook of a group, as far as decisions need it.
type Hook struct {
	Name string
	// Terminating tells a hook of terminations from one of launches.
	Terminating bool
	// Own tells whether it is Lifeboat's to answer.
	Own bool
	// Timeout is how long it waits for an answer or a heartbeat, and Global how
	// long it waits in all; zero: not known.
	Timeout, Global time.Duration
}

// Facts are what a decision about an instance is made from.
type Facts struct {
	// Now is the time.
	Now time.Time
	// InstanceID is the instance.
	InstanceID string
	// State is its lifecycle state as Auto Scaling writes it, and At what that
	// means.
	State string
	At    Position
	// Hooks are those of its group; HooksKnown tells whether they are all.
	Hooks      []Hook
	HooksKnown bool
	// Operator owns the group in place of its account; empty: none.
	Operator string
	// Pool tells whether the group has a warm pool, so that an instance may have
	// had an earlier life.
	Pool bool
	// Seen is when Auto Scaling was asked for that, and Stale tells that it is too
	// long ago to answer by.
	Seen  time.Time
	Stale bool
	// Patience is for how long a launch is extended in all.
	Patience time.Duration
	// Interrupted tells that an Interruption is in work for the instance: its pods
	// and its terminate hook are that one's.
	Interrupted bool
	// Node is the instance's node; nil: it has none.
	Node *Node
}

// Node is a node of an instance.
type Node struct {
	// Created is when the object was made.
	Created time.Time
	// Ready tells whether it counts as Ready, Heartbeat when its kubelet last said
	// so, and Turned since when it does.
	Ready             bool
	Heartbeat, Turned time.Time
	// Kept tells that it has the startup taint, which keeps pods off.
	Kept bool
	// Deleting tells that it is on its way out.
	Deleting bool
	// Pods is how many pods would have to move; negative: not known.
	Pods int
}

// Memory is what is remembered of an instance from one look to the next. Its zero
// value is of one that was never seen.
type Memory struct {
	// Phase is the phase that it was last seen in, and Seen when.
	Phase Phase
	Seen  time.Time
	// From is the phase before, if that was seen.
	From Phase
	// New tells that it was not there the look before: it has had no earlier life.
	New bool
	// Began is when it was first seen in this phase, and After when it was last
	// seen in another; zero: never.
	Began, After time.Time
	// Held is when a hook was first seen to hold it in this phase; Sure, that it
	// was seen not to, not long before.
	Held time.Time
	Sure bool
	// Alone is since when it has had no node; zero: it has one.
	Alone time.Time
	// Said is what hooks were told in this phase.
	Said map[string]Said
	// GaveUp tells that it was left to the hook's own result.
	GaveUp bool
	// Reason is the last decision's.
	Reason string
}

// Said is what a hook was told of an instance in a phase, and what came of it.
type Said struct {
	// Tried is when it was last told anything, and Tries how often in a row without
	// being heard.
	Tried time.Time
	Tries int
	// Heard tells that the last call was taken; Refused, that there was no action
	// to answer; Denied, what permission is missing.
	Heard, Refused bool
	Denied         string
	// Answered tells that the last thing said was the answer, and not a heartbeat.
	Answered bool
	// Extended is when it last took a heartbeat, and Taken when it last took an
	// answer; zero: never.
	Extended, Taken time.Time
}

// See returns what is to be remembered once an instance was seen at a position, at
// the time that Auto Scaling was asked. A new phase begins anew: nothing that was
// begun for the one before is carried on.
func (m Memory) See(at time.Time, p Position, isNew bool) Memory {
	seen := !m.Seen.IsZero()
	if !seen || m.Phase != p.Phase {
		m = Memory{Phase: p.Phase, From: m.Phase, New: isNew && !seen, Began: at, After: m.Seen, Alone: m.Alone}
	}
	if p.Held() && m.Held.IsZero() {
		m.Held, m.Sure = at, seen || isNew
	}
	m.Seen = at
	return m
}

// WithNode returns what is to be remembered of whether it has a node now.
func (m Memory) WithNode(now time.Time, has bool) Memory {
	switch {
	case has:
		m.Alone = time.Time{}
	case m.Alone.IsZero():
		m.Alone = now
	}
	return m
}

// Told returns what is to be remembered once a hook was told something.
func (m Memory) Told(hook string, at time.Time, answer bool, outcome Said) Memory {
	said := make(map[string]Said, len(m.Said)+1)
	for name, s := range m.Said {
		said[name] = s
	}
	s := said[hook]
	if s.Answered != answer || outcome.Heard {
		s.Tries = 0
	}
	s.Tries++
	s.Tried, s.Answered = at, answer
	s.Heard, s.Refused, s.Denied = outcome.Heard, outcome.Refused, outcome.Denied
	switch {
	case outcome.Heard && answer:
		s.Taken = at
	case outcome.Heard:
		s.Extended, s.Tries = at, 0
	}
	said[hook] = s
	m.Said = said
	return m
}

// Fate is how a launch came out.
type Fate string

// The fates.
const (
	Undecided Fate = ""
	Succeeded Fate = "Succeeded"
	Failed    Fate = "Failed"
)

// Fate tells how the phase came out that the memory is of, once the instance is in
// another; Gone is also one that is in the group no more.
func (m Memory) Fate(next Phase) Fate {
	launching := m.Phase == Joining || m.Phase == Warming && !m.Returns()
	switch {
	case !launching:
		return Undecided
	case next == Serving, m.Phase == Warming && (next == Warm || next == Joining):
		return Succeeded
	case next == Leaving, next == LeavingPool, next == Gone, next == Retained:
		return Failed
	}
	return Undecided
}

// Returns reports whether it is known to go back into the warm pool from service,
// and so to be held by the terminate hook.
func (m Memory) Returns() bool {
	return m.Phase == Warming && (m.From == Serving || m.From == Leaving)
}

// enters reports whether it is known to be on its first way into the warm pool,
// and so to be held by the launch hook.
func (m Memory) enters() bool { return m.Phase == Warming && m.New }
