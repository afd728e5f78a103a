package autoscaling

import "time"

// Update changes a group. If change keeps the desired capacity, it follows the new sizes. The name
// and read-only fields stay. Errors: ValidationError, or the error of change.
func (s *State) Update(groupName string, change func(*Group) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	next := *g
	next.Group.Desired = g.Desired
	if err := change(&next.Group); err != nil {
		return err
	}
	next.Name, next.WarmPool, next.Tags, next.Hooks = g.Name, g.WarmPool, g.Tags, g.Hooks
	if next.Desired == g.Desired && next.Max >= next.Min {
		next.Desired = min(max(g.Desired, next.Min), next.Max)
	}
	if err := checkSizes(next.Min, next.Max, next.Desired); err != nil {
		return err
	}
	if next.hasTemplate() {
		if err := s.checkTemplates(&next); err != nil {
			return err
		}
		if _, err := s.subnets(&next); err != nil {
			return err
		}
	}
	if next.Desired != g.Desired {
		next.scaled = time.Now()
	}
	g.Group, g.scaled, g.retryAt = next.Group, next.scaled, time.Time{}
	s.scheduleEvaluation(g)
	return nil
}

// SetDesired sets the desired capacity. Errors: ValidationError outside the sizes;
// ScalingActivityInProgress in the cooldown, if the request honours it.
func (s *State) SetDesired(groupName string, n int, honourCooldown bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	switch {
	case err != nil:
		return err
	case n > g.Max:
		return validation("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", n, g.Max)
	case n < g.Min:
		return validation("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", n, g.Min)
	case honourCooldown && !g.scaled.IsZero() && time.Since(g.scaled) < g.Cooldown:
		return activityInProgress("The group %s is in its cooldown", g.Name)
	}
	g.Desired, g.scaled, g.retryAt = n, time.Now(), time.Time{}
	s.scheduleEvaluation(g)
	return nil
}

// find returns a group that requests may name. It needs the lock.
func (s *State) find(groupName string) (*group, error) {
	g := s.groups[groupName]
	switch {
	case g == nil:
		return nil, groupNotFound(groupName)
	case g.deleting:
		return nil, pendingDelete(groupName)
	default:
		return g, nil
	}
}

// lower subtracts n from the desired capacity for leaving instances; refuse is the error if the
// result is below the minimum. It needs the lock.
func (g *group) lower(n int, refuse error) error {
	if g.Desired-n < g.Min {
		return refuse
	}
	g.Desired -= n
	return nil
}

// raise adds n to the desired capacity for new instances; refuse is the error if the result is
// above the maximum. It needs the lock.
func (g *group) raise(n int, refuse error) error {
	if g.Desired+n > g.Max {
		return refuse
	}
	g.Desired += n
	return nil
}
