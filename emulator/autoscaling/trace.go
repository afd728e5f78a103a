package autoscaling

import (
	"cmp"
	"slices"
	"time"
)

// Change is one state change of an instance.
type Change struct {
	Time              time.Time
	InstanceID, Group string
	From, To          LifecycleState // From is empty for a new member
	Cause             string
}

// maxTrace is how many changes are kept.
const maxTrace = 100_000

// Trace lists the state changes so far, oldest first.
func (s *State) Trace() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.trace)
}

// enter moves a member to a state, records the change, and schedules an evaluation of its group. It
// needs the lock.
func (s *State) enter(m *member, to LifecycleState, cause string) {
	s.trace = append(s.trace, Change{time.Now(), m.InstanceID, m.Group, m.shown, to, cause})
	if len(s.trace) > maxTrace {
		s.trace = slices.Delete(s.trace, 0, maxTrace/10)
	}
	m.State, m.shown = to, to
	s.recordObservation(m, false)
	s.scheduleEvaluation(s.groups[m.Group])
}

// observation is a member as it was from a time on.
type observation struct {
	at   time.Time
	m    Member
	seq  int
	gone bool
}

// recordObservation keeps the state of a member for Describe calls with a lag. It needs the lock.
func (s *State) recordObservation(m *member, gone bool) {
	now := time.Now()
	list := append(s.past[m.InstanceID], observation{now, m.Member, m.seq, gone})
	for len(list) > 1 && !list[1].at.After(now.Add(-s.consistency.Lag)) {
		list = list[1:]
	}
	if len(list) == 1 && gone {
		delete(s.past, m.InstanceID)
		return
	}
	s.past[m.InstanceID] = list
}

// visible lists the members as Describe calls show them, in the order of joining. It needs the
// lock.
func (s *State) visible() []Member {
	asOf := time.Now().Add(-s.consistency.Lag)
	var seen []observation
	for id, list := range s.past {
		i := len(list) - 1
		for i >= 0 && list[i].at.After(asOf) {
			i--
		}
		switch {
		case i < 0:
		case !list[i].gone:
			seen = append(seen, list[i])
		case i == len(list)-1:
			delete(s.past, id)
		}
	}
	slices.SortFunc(seen, func(a, b observation) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]Member, len(seen))
	for i, v := range seen {
		out[i] = v.m
	}
	return out
}
