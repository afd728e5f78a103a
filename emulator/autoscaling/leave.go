package autoscaling

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

const causeUser = "an instance was taken out of service in response to a user request."

// mine returns the members that ids name, all of one group. It needs the lock.
func (s *State) mine(g *group, ids []string, allowed func(LifecycleState) error) ([]*member, error) {
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

// notIn says that an instance is in none of the states that are asked for.
type notIn string

func (e notIn) Error() string { return "is not in " + string(e) }

// TerminateMember ends instances of a group, and with decrement lowers the desired
// capacity by as many; else the group launches others. Warm instances cannot be ended so
// (Amazon EC2 Auto Scaling User Guide, Warm pools, Limitations). One that was retained goes
// at once. Errors: ValidationError.
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
		case decrement && (m.State == InService || coming(m.State)):
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
		s.drop(m, causeUser)
	case leaving(m.State):
		// It goes already, and is not asked to go faster.
	case decrement && s.canReturn(g, m):
		p, _ := ReturnToPool.find()
		s.set(m, p, causeUser)
	default:
		p, _ := ScaleIn.find()
		s.set(m, p, causeUser)
	}
	if m.trip == nil {
		return *s.shortly(m, "Terminating EC2 instance: ", causeUser)
	}
	return *m.trip.activity
}

// canReturn tells whether an instance that scales in goes back to the warm pool. It needs
// the lock.
func (s *State) canReturn(g *group, m *member) bool {
	if g.WarmPool == nil || !g.WarmPool.ReuseOnScaleIn || m.State != InService || m.Spot || !g.lives() {
		return false
	}
	return s.standing(g, true).warm() < g.poolSize()
}

// DetachMembers takes instances out of the group: no hook is told, and EC2 goes on running
// them. With decrement the desired capacity is lowered; else the group launches others at
// once. Errors: ValidationError.
func (s *State) DetachMembers(groupName string, ids []string, decrement bool) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	list, err := s.mine(g, ids, func(st LifecycleState) error {
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
		s.shift(m, Detaching, Detached, max(g.deregistration(s.timing), s.timing.Settle), func() {
			a.close("Successful", "")
			s.ec2.SetSystemTags(m.InstanceID, nil, groupTag)
			s.remove(m.InstanceID)
			s.detached[m.InstanceID] = true
		})
		out = append(out, *a)
	}
	return out, nil
}

// shift moves a member to a lasting state by way of another, without hooks. It needs the
// lock.
func (s *State) shift(m *member, via, end LifecycleState, d time.Duration, then func()) {
	m.trip, m.Target, m.Doomed = nil, end, ""
	s.enter(m, via, "a user request")
	s.clock.After(d, func() {
		if s.members[m.InstanceID] == m && m.State == via && m.trip == nil {
			s.enter(m, end, "a user request")
			then()
		}
	})
}

// EnterStandby takes instances out of service, but keeps them in the group. With decrement
// the desired capacity is lowered; else the group launches others. Errors: ValidationError.
func (s *State) EnterStandby(groupName string, ids []string, decrement bool) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	list, err := s.mine(g, ids, only(InService))
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
		s.shift(m, EnteringStandby, Standby, s.timing.Settle, func() { a.close("Successful", "") })
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

// ExitStandby puts instances back into service, and raises the desired capacity by as many.
// No hook is told. Errors: ValidationError.
func (s *State) ExitStandby(groupName string, ids []string) ([]Activity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return nil, err
	}
	list, err := s.mine(g, ids, only(Standby))
	if err != nil {
		return nil, err
	}
	if err := g.raise(len(list), outOfBounds("move out of standby", g, len(list))); err != nil {
		return nil, err
	}
	var out []Activity
	for _, m := range list {
		a := s.shortly(m, "Moving EC2 instance out of Standby: ", "instance "+m.InstanceID+" was moved out of standby in response to a user request.")
		s.shift(m, Pending, InService, s.timing.Settle, func() { a.close("Successful", ""); s.examine(m) })
		out = append(out, *a)
	}
	return out, nil
}

// AttachRunning puts running instances of EC2 into a group, and raises the desired capacity
// by as many. No hook is told. Errors: ValidationError.
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
		s.shift(m, Pending, InService, s.timing.Settle, func() { s.examine(m) })
	}
	return nil
}
