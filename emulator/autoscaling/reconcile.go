package autoscaling

import (
	"time"
)

// evaluate compares a group with its desired state and executes the next steps. It needs the lock.
func (s *State) evaluate(g *group, now time.Time) {
	s.advance(g)
	launch := g.does(Launch) && !now.Before(g.retryAt)
	var t *memberCounts
	for _, st := range s.snapshot(g, launch).steps() {
		if st.id != "" {
			p, _ := st.transition.path()
			s.startTransition(s.members[st.id], p, st.cause)
			t = nil
			continue
		}
		if t == nil {
			t = s.memberCounts(g)
		}
		s.try(g, st, t)
	}
	s.removeDeleted(g)
}

// snapshot is the state of a group that decisions need. It needs the lock.
func (s *State) snapshot(g *group, launch bool) snapshot {
	v := snapshot{
		desired: g.Desired, poolSize: g.poolSize(), reuse: g.WarmPool != nil && g.WarmPool.ReuseOnScaleIn,
		launch: launch, terminate: g.does(Terminate), replace: g.does(ReplaceUnhealthy), policies: g.Policies,
	}
	now := s.current(g)
	for _, m := range s.of(g) {
		v.members = append(v.members, snapshotMember{m.Member, m.joined, outdated(m.Member, now), m.unhealthyCause})
	}
	return v
}

// try launches an instance, except during the retry delay after a failed launch. It needs the lock.
func (s *State) try(g *group, st step, t *memberCounts) {
	if time.Now().Before(g.retryAt) {
		return
	}
	if _, err := s.launch(g, st.transition, st.cause, nil, t); err != nil {
		s.launchFailed(g, st.cause, err)
		g.retryAt = time.Now().Add(s.timing.Retry)
		s.clock.After(s.timing.Retry, func() { s.scheduleEvaluation(s.groups[g.Name]) })
	}
}
