package autoscaling

import (
	"slices"
	"time"
)

// SetHealth reports an instance as healthy or unhealthy. The group replaces an unhealthy instance.
// With respectGrace, a report within the grace period after the launch has no effect. Errors:
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
		m.Unhealthy, m.unhealthyCause = false, ""
		s.recordObservation(m, false)
	case !respectGrace || time.Since(m.inServiceSince) >= g.GracePeriod:
		s.markUnhealthy(m, causeUnwell)
	}
	return nil
}

// Protect enables or disables scale-in protection of instances. Errors: ValidationError, also for
// warm instances.
func (s *State) Protect(groupName string, ids []string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	list, err := s.membersByID(g, ids, func(st LifecycleState) error {
		if st != InService && !enteringService(st) && st != Standby && st != EnteringStandby {
			return notIn("InService or EnteringStandby or Standby")
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range list {
		m.Protected = on
		s.recordObservation(m, false)
	}
	s.scheduleEvaluation(g)
	return nil
}

// Suspend suspends the named processes of a group, or all. Errors: ValidationError.
func (s *State) Suspend(groupName string, names []Process) error {
	return s.processes(groupName, names, func(g *group, p Process) {
		if g.does(p) {
			g.suspended[p] = time.Now().UTC()
		}
	})
}

// Resume resumes the named processes of a group, or all, and then checks the health of all members.
// Errors: ValidationError.
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
		s.checkHealth(m)
	}
	s.scheduleEvaluation(g)
	return nil
}

const causeZones = "an instance was taken out of service because the number of instances across the Availability Zones was not balanced."

// RebalanceZones makes a group move one instance from the zone with the most to the zone with the
// fewest, launching first. It reports whether the group does so. On AWS this happens after a zone
// had no capacity for a time.
func (s *State) RebalanceZones(groupName string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil || !g.hasTemplate() || !g.does(AZRebalance) {
		return false
	}
	have := map[string][]*member{}
	for _, m := range s.of(g) {
		if serves(m.Member) && m.State == InService {
			have[m.Zone] = append(have[m.Zone], m)
		}
	}
	subnets := s.subnetsByCount(g, s.memberCounts(g), false)
	if len(subnets) < 2 {
		return false
	}
	most, fewest := have[subnets[len(subnets)-1].Zone], have[subnets[0].Zone]
	if len(most) <= len(fewest)+1 {
		return false
	}
	s.replaceMember(most[0], causeZones)
	return true
}
