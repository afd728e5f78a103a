package autoscaling

import (
	"time"
)

// evaluate does what the group needs now. It needs the lock.
func (s *State) evaluate(g *group, now time.Time) {
	s.advance(g)
	launch := g.does(Launch) && !now.Before(g.retryAt)
	var t *tally
	for _, st := range s.standing(g, launch).steps() {
		if st.id != "" {
			p, _ := st.journey.find()
			s.set(s.members[st.id], p, st.cause)
			t = nil
			continue
		}
		if t == nil {
			t = s.tally(g)
		}
		s.try(g, st, t)
	}
	s.bury(g)
}

// standing is how a group stands. It needs the lock.
func (s *State) standing(g *group, launch bool) standing {
	v := standing{
		desired: g.Desired, poolSize: g.poolSize(), reuse: g.WarmPool != nil && g.WarmPool.ReuseOnScaleIn,
		launch: launch, terminate: g.does(Terminate), replace: g.does(ReplaceUnhealthy), policies: g.Policies,
	}
	now := s.current(g)
	for _, m := range s.of(g) {
		v.members = append(v.members, standingMember{m.Member, m.joined, outdated(m.Member, now), m.ailment})
	}
	return v
}

// try launches an instance, unless a launch failed a moment ago. It needs the lock.
func (s *State) try(g *group, st step, t *tally) {
	if time.Now().Before(g.retryAt) {
		return
	}
	if _, err := s.launch(g, st.journey, st.cause, nil, t); err != nil {
		s.launchFailed(g, st.cause, err)
		g.retryAt = time.Now().Add(s.timing.Retry)
		s.clock.After(s.timing.Retry, func() { s.wake(s.groups[g.Name]) })
	}
}
