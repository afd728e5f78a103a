package autoscaling

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

const causeUser = "an instance was taken out of service in response to a user request."

// membersByID returns the members with these ids, all of one group. It needs the lock.
func (s *State) membersByID(g *group, ids []string, allowed func(LifecycleState) error) ([]*member, error) {
	var out []*member
	for _, id := range ids {
		m := s.members[id]
		if m == nil || m.Group != g.Name {
			return nil, notInGroup(id, g.Name)
		}
		if err := allowed(m.State); err != nil {
			return nil, validation("The instance %s %s.", id, err.Error())
		}
		out = append(out, m)
	}
	return out, nil
}

// notIn says that an instance is in none of the required states.
type notIn string

func (e notIn) Error() string { return "is not in " + string(e) }

// TerminateMember terminates instances of a group. With decrement it lowers the desired capacity by
// the same number; otherwise the group launches replacements. It rejects warm instances (Amazon EC2
// Auto Scaling User Guide, Warm pools, Limitations). A retained instance is terminated immediately.
// Errors: ValidationError.
func (s *State) TerminateMember(ids []string, decrement bool) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lowered := map[*group]int{}
	for _, id := range ids {
		m := s.members[id]
		switch {
		case m == nil:
			return nil, instanceNotManaged(id)
		case m.State.warm() && !retained(m.State):
			return nil, validation("The instance %s is in a warm pool. TerminateInstanceInAutoScalingGroup does not support instances in a warm pool.", id)
		case decrement && (m.State == InService || enteringService(m.State)):
			lowered[s.groups[m.Group]]++
		}
	}
	for g, n := range lowered {
		if err := g.lower(n, belowMinimum(g)); err != nil {
			return nil, err
		}
	}
	var out []Activity
	for _, id := range ids {
		out = append(out, s.terminate(s.members[id], decrement))
	}
	return out, nil
}

// terminate needs the lock.
func (s *State) terminate(m *member, decrement bool) Activity {
	g := s.groups[m.Group]
	switch {
	case retained(m.State):
		s.terminateWithoutHooks(m, causeUser)
	case leaving(m.State):
		// The instance is being terminated already. A second request does not accelerate it.
	case decrement && s.canReturn(g, m):
		p, _ := ReturnToPool.path()
		s.startTransition(m, p, causeUser)
	default:
		p, _ := ScaleIn.path()
		s.startTransition(m, p, causeUser)
	}
	if m.transition == nil {
		return *s.shortly(m, "Terminating EC2 instance: ", causeUser)
	}
	return *m.transition.activity
}

// canReturn reports whether an instance that scales in returns to the warm pool. It needs the lock.
func (s *State) canReturn(g *group, m *member) bool {
	if g.WarmPool == nil || !g.WarmPool.ReuseOnScaleIn || m.State != InService || m.Spot || !g.hasTemplate() {
		return false
	}
	return s.snapshot(g, true).warm() < g.poolSize()
}

// DetachMembers takes instances out of the group. Hooks are not notified, and the instances keep
// running. With decrement it lowers the desired capacity; otherwise the group launches
// replacements. Errors: ValidationError.
func (s *State) DetachMembers(groupName string, ids []string, decrement bool) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	list, err := s.membersByID(g, ids, func(st LifecycleState) error {
		if st != InService && st != Standby {
			return notIn("InService or Standby")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if decrement {
		if err := g.lower(len(list), outOfBounds("detach", g, len(list))); err != nil {
			return nil, err
		}
	}
	var out []Activity
	for _, m := range list {
		a := s.shortly(m, "Detaching EC2 instance: ", "instance "+m.InstanceID+" was detached in response to a user request.")
		s.moveWithoutHooks(m, Detaching, Detached, max(g.deregistration(s.timing), s.timing.Settle), func() {
			a.close("Successful", "")
			s.ec2.SetSystemTags(m.InstanceID, nil, groupTag)
			s.remove(m.InstanceID)
			s.detached[m.InstanceID] = true
		})
		out = append(out, *a)
	}
	return out, nil
}

// moveWithoutHooks moves a member to a lasting state through an intermediate state, without hooks.
// It needs the lock.
func (s *State) moveWithoutHooks(m *member, via, end LifecycleState, d time.Duration, then func()) {
	m.transition, m.Target, m.ReplaceCause = nil, end, ""
	s.enter(m, via, "a user request")
	s.clock.After(d, func() {
		if s.members[m.InstanceID] == m && m.State == via && m.transition == nil {
			s.enter(m, end, "a user request")
			then()
		}
	})
}

// EnterStandby takes instances out of service and keeps them in the group. With decrement it lowers
// the desired capacity; otherwise the group launches replacements. Errors: ValidationError.
func (s *State) EnterStandby(groupName string, ids []string, decrement bool) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	list, err := s.membersByID(g, ids, only(InService))
	if err != nil {
		return nil, err
	}
	if decrement {
		if err := g.lower(len(list), outOfBounds("place into standby", g, len(list))); err != nil {
			return nil, err
		}
	}
	var out []Activity
	for _, m := range list {
		a := s.shortly(m, "Moving EC2 instance to Standby: ", "instance "+m.InstanceID+" was moved to standby in response to a user request.")
		s.moveWithoutHooks(m, EnteringStandby, Standby, s.timing.Settle, func() { a.close("Successful", "") })
		out = append(out, *a)
	}
	return out, nil
}

func only(want LifecycleState) func(LifecycleState) error {
	return func(st LifecycleState) error {
		if st != want {
			return notIn(want)
		}
		return nil
	}
}

// ExitStandby puts instances back into service, and raises the desired capacity by the same number.
// Hooks are not notified. Errors: ValidationError.
func (s *State) ExitStandby(groupName string, ids []string) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	list, err := s.membersByID(g, ids, only(Standby))
	if err != nil {
		return nil, err
	}
	if err := g.raise(len(list), outOfBounds("move out of standby", g, len(list))); err != nil {
		return nil, err
	}
	var out []Activity
	for _, m := range list {
		a := s.shortly(m, "Moving EC2 instance out of Standby: ", "instance "+m.InstanceID+" was moved out of standby in response to a user request.")
		s.moveWithoutHooks(m, Pending, InService, s.timing.Settle, func() { a.close("Successful", ""); s.checkHealth(m) })
		out = append(out, *a)
	}
	return out, nil
}

// AttachRunning adds running EC2 instances to a group, and raises the desired capacity by the same
// number. Hooks are not notified. Errors: ValidationError.
func (s *State) AttachRunning(groupName string, ids []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	var list []ec2.Instance
	for _, id := range ids {
		in, ok := s.ec2.Instance(id)
		switch m := s.members[id]; {
		case !ok:
			return validation("Invalid Instance ID: %s", id)
		case m != nil:
			return validation("Instance %s is already part of AutoScalingGroup:%s", id, m.Group)
		case in.State != ec2.Running:
			return validation("Instance %s is not in correct state. Instance(s) must be in 'running' state.", id)
		}
		list = append(list, in)
	}
	if err := g.raise(len(list), outOfBounds("attach", g, len(list))); err != nil {
		return err
	}
	for _, in := range list {
		m := s.join(g, in, InService)
		m.Protected = g.ProtectNew
		s.ec2.SetSystemTags(in.ID, map[string]string{groupTag: g.Name})
		s.moveWithoutHooks(m, Pending, InService, s.timing.Settle, func() { s.checkHealth(m) })
	}
	return nil
}
