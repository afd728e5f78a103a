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

// follow handles changes of instances at EC2.
func (s *State) follow(c ec2.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[c.Instance.ID]
	if m == nil {
		return
	}
	switch c.What {
	case ec2.Booted:
		s.continueAfterBoot(m)
	case ec2.Recommended, ec2.Warned:
		s.onSpotWarning(m, c)
	case ec2.WindingDown:
		s.checkHealth(m)
	case ec2.WasTerminated:
		s.onTerminated(m)
	case ec2.WasStopped:
		if t := m.transition; t != nil && m.State == t.base.proceed() {
			s.finish(m, t)
		}
	}
}

// onSpotWarning handles warnings for spot instances in a group with capacity rebalancing. After a
// rebalance recommendation the instance is terminated once its replacement is in service. After the
// interruption notice it is terminated immediately. Without capacity rebalancing the group does
// nothing before the end (Amazon EC2 Auto Scaling User Guide, Use Capacity Rebalancing to handle
// Amazon EC2 Spot interruptions). It needs the lock.
func (s *State) onSpotWarning(m *member, c ec2.Change) {
	g := s.groups[m.Group]
	if !g.hasTemplate() || !g.CapacityRebalance || !m.Spot || m.State != InService || g.deleting {
		return
	}
	if c.What == ec2.Recommended {
		s.replaceMember(m, causeRebalance)
		return
	}
	p, _ := ScaleIn.path()
	s.startTransition(m, p, causeReclaimed)
}

// replaceMember makes a group replace a member: launch first, then terminate. It needs the lock.
func (s *State) replaceMember(m *member, cause string) {
	if m.ReplaceCause == "" {
		m.ReplaceCause = cause
		s.recordObservation(m, false)
		s.scheduleEvaluation(s.groups[m.Group])
	}
}

// onTerminated removes an instance that EC2 has terminated, with or without a request to the group.
// No hook can hold such an instance. It needs the lock.
func (s *State) onTerminated(m *member) {
	t := m.transition
	if t == nil || t.end != Terminated && t.end != WarmedTerminated {
		if s.groups[m.Group].hasTemplate() && !s.groups[m.Group].does(HealthCheck) {
			return
		}
		s.loseMember(m)
		t = m.transition
	}
	s.finish(m, t)
}

// loseMember ends the membership of an instance that EC2 terminates. It needs the lock.
func (s *State) loseMember(m *member) {
	if t := m.transition; t != nil && t.hookTransition == Launching && s.groups[m.Group].hasTemplate() {
		s.conclude(m, t, "Unsuccessful")
		t.activity.close("Failed", "Instance became unhealthy while waiting for instance to be in InService state.")
	}
	p, _ := ScaleIn.path()
	if m.State.warm() && s.groups[m.Group].hasTemplate() {
		p, _ = PoolShrink.path()
	}
	m.Unhealthy = true
	s.newTransition(m, p, causeGone)
}

// checkHealth is the health check of a member of a group with a template. An instance that EC2
// terminates is removed without hooks. An instance that is stopped while in service is unhealthy;
// before the launch hooks complete, a stop has no effect. It needs the lock.
func (s *State) checkHealth(m *member) {
	g := s.groups[m.Group]
	if !g.hasTemplate() || !g.does(HealthCheck) || leaving(m.State) {
		return
	}
	in, ok := s.ec2.Instance(m.InstanceID)
	switch {
	case !ok || in.State == ec2.Terminated:
		s.loseMember(m)
		s.finish(m, m.transition)
	case in.State == ec2.ShuttingDown:
		s.loseMember(m)
	case in.State != ec2.Stopping && in.State != ec2.Stopped:
	case m.State == InService || m.State == WarmedRunning:
		s.markUnhealthy(m, causeGone)
	case m.transition != nil && m.transition.booting:
		s.conclude(m, m.transition, "Unsuccessful")
		m.transition.activity.close("Failed", "The instance was stopped while it was being launched.")
		s.terminateWithoutHooks(m, causeGone)
	}
}

// markUnhealthy marks a member unhealthy. It needs the lock.
func (s *State) markUnhealthy(m *member, why string) {
	if !m.Unhealthy {
		m.Unhealthy, m.unhealthyCause = true, why
		s.recordObservation(m, false)
		s.scheduleEvaluation(s.groups[m.Group])
	}
}

// leaving reports whether an instance in this state is being terminated or detached.
func leaving(st LifecycleState) bool {
	name := strings.TrimPrefix(string(st), "Warmed:")
	return strings.HasPrefix(name, "Terminat") || strings.HasPrefix(name, "Detach")
}

// retained reports whether an instance in this state waits for a user to terminate it.
func retained(st LifecycleState) bool { return strings.HasSuffix(string(st), ":Retained") }

// removeDeleted removes a deleted group, or a deleted warm pool, after its last instance is gone.
// It needs the lock.
func (s *State) removeDeleted(g *group) {
	if !g.poolEnds && !g.deleting {
		return
	}
	list := s.of(g)
	if g.poolEnds && !slices.ContainsFunc(list, func(m *member) bool { return m.State.warm() }) {
		g.poolEnds, g.WarmPool = false, nil
	}
	if g.deleting && len(list) == 0 {
		s.eraseGroup(g)
	}
}

// eraseGroup needs the lock.
func (s *State) eraseGroup(g *group) {
	delete(s.groups, g.Name)
	s.order = slices.DeleteFunc(s.order, func(name string) bool { return name == g.Name })
}

// scheduleEvaluation makes a group with a template evaluate soon. It needs the lock.
func (s *State) scheduleEvaluation(g *group) {
	if g == nil || !g.hasTemplate() || g.waking || g.deleting {
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
