package termination

import (
	"cmp"
	"hash/fnv"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Status is how it stands.
type Status = v1alpha1.AnswerStatus

// Hook is a lifecycle hook of the group for instances that leave it.
type Hook struct {
	Name string
	// Timeout is its heartbeat timeout, Global how long it can be extended in all.
	Timeout, Global time.Duration
	// Abandons tells whether its default result is ABANDON.
	Abandons bool
	// Own tells whether Lifeboat answers it.
	Own bool
}

// Seen is what was last seen of the instance in its group.
type Seen struct {
	// Time is when the group was looked at; zero: it was not, or in vain.
	Time time.Time
	// Group is its name, and State the lifecycle state; empty where the instance is
	// not in it.
	Group, State string
	Hooks        []Hook
	HooksKnown   bool
}

// Facts is all that is decided from.
type Facts struct {
	Now        time.Time
	InstanceID string
	// Notices are those that count.
	Notices []v1alpha1.Notice
	// Was is how it stood when last written down, or nil.
	Was  *Status
	Seen Seen
	// Owns tells whether Lifeboat answers a hook that only an event has named.
	Owns func(hook string) bool
	// Retain is whether what is not drained in time is to be retained.
	Retain bool
	// Action is what policy says; Deadline, by when.
	Action   v1alpha1.Action
	Deadline *v1alpha1.Deadline
	// Drained is whether nothing on the node is needed any more.
	Drained bool
}

// Do is what the hooks are to be told now.
type Do string

// What there is to be told.
const (
	Nothing   Do = ""
	Heartbeat Do = "Heartbeat"
	Answer    Do = "Answer"
)

// Decision is what is done, and how it stands.
type Decision struct {
	// Status is nil where there is nothing to tell.
	Status *Status
	Do     Do
	// Pending is whether the instance is, or is about to be, held by a hook that
	// Lifeboat has yet to answer.
	Pending bool
	// Look asks for the group to be looked at soon.
	Look bool
	// Wake is when to decide again; zero: when something changes.
	Wake time.Time
}

// firing is what the notices say of the hook that holds the instance.
type firing struct {
	any     bool // the group is taking the instance away
	group   string
	returns bool
	tokens  map[string]string // by hook
	// at is when the last firing of a hook of ours was issued, and heard when it
	// was recorded; zero: none is known.
	at, heard time.Time
}

// isTaken reports whether a notice says that the group takes the instance away. What
// was sent on purpose, to try what happens, says nothing of a hook.
func isTaken(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindAutoScalingTermination && !n.Withdrawn && !n.Drill
}

// read gathers what the notices say. An agent says nothing of a hook: it must not
// have others' hooks answered.
func (f *Facts) read() firing {
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
		if n.Hook.Token == "" || !f.Owns(n.Hook.Name) || n.ReceivedTime.Time.Before(w.heard) {
			continue
		}
		w.tokens[n.Hook.Name] = n.Hook.Token
		w.heard, w.at = n.ReceivedTime.Time, n.Time.Time
		if w.at.IsZero() {
			w.at = w.heard
		}
	}
	return w
}

// leavesPool reports whether the instance was seen on its way out of the warm pool.
func (f *Facts) leavesPool() bool {
	return !f.Seen.Time.IsZero() && lifecycle.Read(f.Seen.State).Phase == lifecycle.LeavingPool
}

// where is where the instance stands, as far as this concerns.
type where int

const (
	unknown where = iota
	before        // on its way to the wait, or not seen yet on its way
	held
	past      // the wait is over
	elsewhere // it is doing something else
)

// stands reads the state. While an event is newer than the state, or the state is
// on its way, the event is believed: Auto Scaling sends it when a hook begins to
// hold the instance.
func (f *Facts) stands(w firing) where {
	at := position(f.Seen, w)
	if len(w.tokens) == 0 || at == held || at == past && f.Seen.Time.After(w.heard) {
		return at
	}
	if at == before || !f.Seen.Time.After(w.heard) {
		return held
	}
	return at
}

func position(s Seen, w firing) where {
	if s.Time.IsZero() {
		return unknown
	}
	p := lifecycle.Read(s.State)
	leaves := p.Phase == lifecycle.Leaving || p.Phase == lifecycle.LeavingPool || p.Phase == lifecycle.Warming && w.returns
	switch {
	case s.State == "", p.Phase == lifecycle.Gone, p.Phase == lifecycle.Retained,
		leaves && p.Step == lifecycle.Proceeding, p.Phase == lifecycle.Warm && w.returns:
		return past
	case leaves && p.Held():
		return held
	case leaves:
		return before
	}
	return elsewhere
}

// spread is a share between 0 and 1 that is the instance's own.
func spread(parts ...string) float64 {
	h := fnv.New32a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // it never fails
	}
	return float64(h.Sum32()%1000) / 1000
}

// Returns reports whether the instance is going back to its warm pool, or is there.
// An event that came late, of an instance that serves by now, does not count.
func Returns(f Facts) bool {
	w := f.read()
	return w.any && w.returns && f.stands(w) != elsewhere && (f.Seen.State != "" || f.Seen.Time.IsZero())
}
