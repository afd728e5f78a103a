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

// observation is a member as it was at one time.
type observation struct {
	m   Member
	seq int
}

// recordObservation keeps the state of a member for Describe calls with a lag. It needs the lock.
func (s *State) recordObservation(m *member, gone bool) {
	if gone {
		s.past.Delete(m.InstanceID)
		return
	}
	s.past.Put(m.InstanceID, observation{m.Member, m.seq})
}

// visible lists the members as Describe calls show them, in the order of joining. It needs the
// lock.
func (s *State) visible() []Member {
	seen := s.past.All()
	slices.SortFunc(seen, func(a, b observation) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]Member, len(seen))
	for i, v := range seen {
		out[i] = v.m
	}
	return out
}
