package autoscaling

import (
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Causes of activities (Amazon EC2 Auto Scaling User Guide, Health checks, and Capacity
// Rebalancing).
const (
	causeGone      = "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."
	causeUnwell    = "an instance was taken out of service in response to a user health-check."
	causeRebalance = "an instance was taken out of service in response to an EC2 instance rebalance recommendation."
	causeReclaimed = "an instance was taken out of service in response to an EC2 Spot Instance interruption notice."
)

// follow hears what becomes of instances at EC2.
func (s *State) follow(c ec2.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[c.Instance.ID]
	if m == nil {
		return
	}
	switch c.What {
	case ec2.Booted:
		s.booted(m)
	case ec2.Recommended, ec2.Warned:
		s.endangered(m, c)
	case ec2.WindingDown:
		s.examine(m)
	case ec2.WasTerminated:
		s.gone(m)
	case ec2.WasStopped:
		if t := m.trip; t != nil && m.State == t.base.proceed() {
			s.arrive(m, t)
		}
	}
}

// endangered is what a group with capacity rebalancing does about spot instances: one that
// is recommended to be replaced goes when the other is in service; one that has its final
// notice goes at once. Without capacity rebalancing nothing happens before the end (Amazon
// EC2 Auto Scaling User Guide, Use Capacity Rebalancing to handle Amazon EC2 Spot
// interruptions). It needs the lock.
func (s *State) endangered(m *member, c ec2.Change) {
	g := s.groups[m.Group]
	if !g.lives() || !g.CapacityRebalance || !m.Spot || m.State != InService || g.deleting {
		return
	}
	if c.What == ec2.Recommended {
		s.doom(m, causeRebalance)
		return
	}
	p, _ := ScaleIn.find()
	s.set(m, p, causeReclaimed)
}

// doom has a group replace a member: launch first, terminate then. It needs the lock.
func (s *State) doom(m *member, cause string) {
	if m.Doomed == "" {
		m.Doomed = cause
		s.note(m, false)
		s.wake(s.groups[m.Group])
	}
}

// gone removes an instance that EC2 has terminated: nobody need have asked the group, and
// no hook can hold what is gone. It needs the lock.
func (s *State) gone(m *member) {
	t := m.trip
	if t == nil || t.end != Terminated && t.end != WarmedTerminated {
		if s.groups[m.Group].lives() && !s.groups[m.Group].does(HealthCheck) {
			return
		}
		s.lose(m)
		t = m.trip
	}
	s.arrive(m, t)
}

// lose has a member go that EC2 ends. It needs the lock.
func (s *State) lose(m *member) {
	if t := m.trip; t != nil && t.transition == Launching && s.groups[m.Group].lives() {
		s.conclude(m, t, "Unsuccessful")
		t.activity.close("Failed", "Instance became unhealthy while waiting for instance to be in InService state.")
	}
	p, _ := ScaleIn.find()
	if m.State.warm() && s.groups[m.Group].lives() {
		p, _ = PoolShrink.find()
	}
	m.Unhealthy = true
	s.depart(m, p, causeGone)
}

// examine looks at a member of a living group as the health check does: what EC2 ends is
// lost and gets no hooks; what is stopped while in service is unhealthy. Before the
// launch hooks are through only the former counts. It needs the lock.
func (s *State) examine(m *member) {
	g := s.groups[m.Group]
	if !g.lives() || !g.does(HealthCheck) || leaving(m.State) {
		return
	}
	in, ok := s.ec2.Instance(m.InstanceID)
	switch {
	case !ok || in.State == ec2.Terminated:
		s.lose(m)
		s.arrive(m, m.trip)
	case in.State == ec2.ShuttingDown:
		s.lose(m)
	case in.State != ec2.Stopping && in.State != ec2.Stopped:
	case m.State == InService || m.State == WarmedRunning:
		s.sicken(m, causeGone)
	case m.trip != nil && m.trip.booting:
		s.conclude(m, m.trip, "Unsuccessful")
		m.trip.activity.close("Failed", "The instance was stopped while it was being launched.")
		s.drop(m, causeGone)
	}
}

// sicken marks a member unhealthy. It needs the lock.
func (s *State) sicken(m *member, why string) {
	if !m.Unhealthy {
		m.Unhealthy, m.ailment = true, why
		s.note(m, false)
		s.wake(s.groups[m.Group])
	}
}

// leaving tells whether an instance in this state is on its way out for good.
func leaving(st LifecycleState) bool {
	name := strings.TrimPrefix(string(st), "Warmed:")
	return strings.HasPrefix(name, "Terminat") || strings.HasPrefix(name, "Detach")
}

// retained tells whether an instance in this state waits for somebody to end it.
func retained(st LifecycleState) bool { return strings.HasSuffix(string(st), ":Retained") }

// bury ends a group, or a warm pool, that was deleted, when its last instance is gone. It
// needs the lock.
func (s *State) bury(g *group) {
	if !g.poolEnds && !g.deleting {
		return
	}
	list := s.of(g)
	if g.poolEnds && !slices.ContainsFunc(list, func(m *member) bool { return m.State.warm() }) {
		g.poolEnds, g.WarmPool = false, nil
	}
	if g.deleting && len(list) == 0 {
		s.erase(g)
	}
}

// erase needs the lock.
func (s *State) erase(g *group) {
	delete(s.groups, g.Name)
	s.order = slices.DeleteFunc(s.order, func(name string) bool { return name == g.Name })
}

// wake has a living group look soon at what to do. It needs the lock.
func (s *State) wake(g *group) {
	if g == nil || !g.lives() || g.waking || g.deleting {
		return
	}
	g.waking = true
	s.clock.After(max(s.timing.Evaluate, 0), func() {
		g.waking = false
		if s.groups[g.Name] == g && !g.deleting {
			s.evaluate(g, time.Now())
		}
	})
}
