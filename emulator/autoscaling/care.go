package autoscaling

import (
	"slices"
	"time"
)

// SetHealth says that an instance is well or not. One that is not is replaced; within the
// grace period after its launch nobody listens to that where respectGrace is set. Errors:
// ValidationError.
func (s *State) SetHealth(instanceID string, healthy, respectGrace bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[instanceID]
	if m == nil {
		return instanceNotManaged(instanceID)
	}
	g := s.groups[m.Group]
	switch {
	case healthy:
		m.Unhealthy, m.ailment = false, ""
		s.note(m, false)
	case !respectGrace || time.Since(m.arrived) >= g.GracePeriod:
		s.sicken(m, causeUnwell)
	}
	return nil
}

// Protect protects instances from scale-in, or ends that. Errors: ValidationError, also for
// warm instances.
func (s *State) Protect(groupName string, ids []string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	list, err := s.mine(g, ids, func(st LifecycleState) error {
		if st != InService && !coming(st) && st != Standby && st != EnteringStandby {
			return notIn("InService or EnteringStandby or Standby")
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range list {
		m.Protected = on
		s.note(m, false)
	}
	s.wake(g)
	return nil
}

// Suspend stops processes of a group: those named, or all. Errors: ValidationError.
func (s *State) Suspend(groupName string, names []Process) error {
	return s.processes(groupName, names, func(g *group, p Process) {
		if g.does(p) {
			g.suspended[p] = time.Now().UTC()
		}
	})
}

// Resume lets processes of a group run again: those named, or all. What happened in the
// meantime is noticed now. Errors: ValidationError.
func (s *State) Resume(groupName string, names []Process) error {
	return s.processes(groupName, names, func(g *group, p Process) { delete(g.suspended, p) })
}

func (s *State) processes(groupName string, names []Process, set func(*group, Process)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = processes
	}
	for _, p := range names {
		if !slices.Contains(processes, p) {
			return validation("The process type %s is not valid.", p)
		}
	}
	for _, p := range names {
		set(g, p)
	}
	g.retryAt = time.Time{}
	for _, m := range s.of(g) {
		s.examine(m)
	}
	s.wake(g)
	return nil
}

const causeZones = "an instance was taken out of service because the number of instances across the Availability Zones was not balanced."

// RebalanceZones has a group move one instance from the zone with the most to the one with
// the fewest, launching first, and tells whether it does. On AWS that happens when a zone
// had no capacity for a time.
func (s *State) RebalanceZones(groupName string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil || !g.lives() || !g.does(AZRebalance) {
		return false
	}
	have := map[string][]*member{}
	for _, m := range s.of(g) {
		if serves(m.Member) && m.State == InService {
			have[m.Zone] = append(have[m.Zone], m)
		}
	}
	subnets := s.spread(g, s.tally(g), false)
	if len(subnets) < 2 {
		return false
	}
	most, fewest := have[subnets[len(subnets)-1].Zone], have[subnets[0].Zone]
	if len(most) <= len(fewest)+1 {
		return false
	}
	s.doom(most[0], causeZones)
	return true
}
