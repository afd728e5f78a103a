package lifecycle

import (
	"maps"
	"time"
)

// Facts are the input of a decision about an instance.
type Facts struct {
	// Now is the time.
	Now time.Time
	// InstanceID is the instance.
	InstanceID string
	// State is its lifecycle state as Auto Scaling writes it, and At the parsed state.
	State string
	At    Position
	// Hooks are the hooks of its group; HooksKnown is set if they are complete.
	Hooks      []Hook
	HooksKnown bool
	// Operator is the AWS service that manages the group; empty: none.
	Operator string
	// Pool is set if the group has a warm pool, so that an instance may have been in service
	// before.
	Pool bool
	// Seen is when Auto Scaling was asked, and Stale is set if that is too long ago for
	// completing a hook.
	Seen  time.Time
	Stale bool
	// Patience is how long a launch is extended in total.
	Patience time.Duration
	// Interrupted is set if the instance has an unfinished Interruption, which handles its pods
	// and its terminate hook.
	Interrupted bool
	// Node is the instance's node; nil: it has none.
	Node *Node
}

// Node is a node of an instance.
type Node struct {
	// Created is when the Node was created.
	Created time.Time
	// Ready is set if it is Ready, Heartbeat is when its kubelet last reported, and Turned
	// since when it has that status.
	Ready             bool
	Heartbeat, Turned time.Time
	// Tainted is set if it has the startup taint, which keeps pods off.
	Tainted bool
	// Deleting is set if it is being deleted.
	Deleting bool
	// Pods is how many pods must move; negative: unknown.
	Pods int
}

// last is the time of the node's last report.
func (n *Node) last() time.Time {
	last := n.Created
	for _, t := range []time.Time{n.Heartbeat, n.Turned} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Memory is what is remembered about an instance between passes. Its zero value is for an
// instance that was never seen.
type Memory struct {
	// Phase is its last seen phase, and Seen when.
	Phase Phase
	Seen  time.Time
	// From is the phase before, if that was seen.
	From Phase
	// New is set if it was not there before: it was never in service.
	New bool
	// Began is when it was first seen in this phase, and After when it was last seen in
	// another; zero: never.
	Began, After time.Time
	// Held is when a hook was first seen to hold it in this phase; Sure is set if it was seen
	// without a hold shortly before.
	Held time.Time
	Sure bool
	// Alone is since when it has had no node; zero: it has one.
	Alone time.Time
	// Calls has the calls for hooks in this phase.
	Calls map[string]CallRecord
	// GaveUp is set if it was left to the hook's default result.
	GaveUp bool
	// Reason is the reason of the last decision.
	Reason string
}

// See returns the memory after an instance was seen at a position, at the time of the read. A
// new phase drops the calls of the one before.
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

// WithNode returns the memory after a check whether it has a node.
func (m Memory) WithNode(now time.Time, has bool) Memory {
	switch {
	case has:
		m.Alone = time.Time{}
	case m.Alone.IsZero():
		m.Alone = now
	}
	return m
}

// RecordCall returns the memory after a call for a hook.
func (m Memory) RecordCall(hook string, at time.Time, do Verb, err error) Memory {
	calls := maps.Clone(m.Calls)
	if calls == nil {
		calls = map[string]CallRecord{}
	}
	calls[hook] = calls[hook].After(at, do, err)
	m.Calls = calls
	return m
}

// Result is the result of a launch.
type Result string

// The results of launches.
const (
	Undecided       Result = ""
	LaunchSucceeded Result = "Succeeded"
	LaunchFailed    Result = "Failed"
)

// Launches are the results of launches that ended, for tables of metrics.
func Launches() []Result { return []Result{LaunchSucceeded, LaunchFailed} }

// Result returns the result of the launch, once the instance is in another phase. Gone also
// means that the instance has left its group.
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

// Returns reports whether it is known to return to the warm pool from service, and so to be held
// by the terminate hook.
func (m Memory) Returns() bool {
	return m.Phase == Warming && (m.From == Serving || m.From == Leaving)
}

// enters reports whether it is known to enter the warm pool for the first time, and so to be
// held by the launch hook.
func (m Memory) enters() bool { return m.Phase == Warming && m.New }
