package lifecycle

import (
	"maps"
	"time"
)

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
	// Tainted tells that it has the startup taint, which keeps pods off.
	Tainted bool
	// Deleting tells that it is on its way out.
	Deleting bool
	// Pods is how many pods would have to move; negative: not known.
	Pods int
}

// last is when anything was last reported of a node.
func (n *Node) last() time.Time {
	last := n.Created
	for _, t := range []time.Time{n.Heartbeat, n.Turned} {
		if t.After(last) {
			last = t
		}
	}
	return last
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
	// Told is what hooks were told in this phase.
	Told map[string]Told
	// GaveUp tells that it was left to the hook's own result.
	GaveUp bool
	// Reason is the last decision's.
	Reason string
}

// See returns what is to be remembered once an instance was seen at a position, at
// the time that Auto Scaling was asked. A new phase forgets what was done in the
// one before.
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

// Tell returns what is to be remembered once a hook was told something.
func (m Memory) Tell(hook string, at time.Time, do Verb, err error) Memory {
	told := maps.Clone(m.Told)
	if told == nil {
		told = map[string]Told{}
	}
	told[hook] = told[hook].After(at, do, err)
	m.Told = told
	return m
}

// Result is how a launch came out.
type Result string

// The results of launches.
const (
	Undecided       Result = ""
	LaunchSucceeded Result = "Succeeded"
	LaunchFailed    Result = "Failed"
)

// Result tells how the launch came out that the memory is of, once the instance is in
// another phase. Gone is also an instance that has left its group.
func (m Memory) Result(next Phase) Result {
	launching := m.Phase == Joining || m.Phase == Warming && !m.Returns()
	switch {
	case !launching:
		return Undecided
	case next == Serving, m.Phase == Warming && (next == Warm || next == Joining):
		return LaunchSucceeded
	case next == Leaving, next == LeavingPool, next == Gone, next == Retained:
		return LaunchFailed
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
