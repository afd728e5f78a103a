package autoscaling

// Pool is the warm pool of a group; without one the zero value. The error is
// ValidationError.
func (s *State) Pool(groupName string) (WarmPool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil || g.WarmPool == nil {
		return WarmPool{}, err
	}
	return *g.WarmPool, nil
}

// PutPool makes the warm pool of a group, or changes it: what is warm already stays as it
// is, and goes or comes with the size. Errors: ValidationError; InstanceRefreshInProgress;
// ScalingActivityInProgress while another is being deleted.
func (s *State) PutPool(groupName string, p WarmPool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	switch {
	case err != nil:
		return err
	case g.active() != nil:
		return refreshInProgress("Warm pools cannot be changed")
	case g.poolEnds:
		return activityInProgress("The warm pool of the group %s is being deleted", g.Name)
	}
	next := *g
	next.WarmPool = &p
	if err := s.checkPool(&next); err != nil {
		return err
	}
	g.WarmPool = &p
	s.wake(g)
	return nil
}

// checkPool refuses a warm pool that cannot be. Spot instances cannot be stopped, so the
// pool of a mixed group is bought on demand.
func (s *State) checkPool(g *group) error {
	p := g.WarmPool
	switch p.State {
	case "", WarmedStopped, WarmedRunning, WarmedHibernated:
	default:
		return validation("1 validation error detected: Value '%s' at 'poolState' failed to satisfy constraint: Member must satisfy enum value set: [Stopped, Running, Hibernated]", p.State)
	}
	switch {
	case p.MinSize < 0:
		return constraint(p.MinSize, "minSize", "have value greater than or equal to 0")
	case p.MaxPrepared != nil && *p.MaxPrepared < 0:
		return constraint(*p.MaxPrepared, "maxGroupPreparedCapacity", "have value greater than or equal to -1")
	case s.wantsSpot(g):
		return validation("You can't add a warm pool to an Auto Scaling group whose launch template requests Spot Instances.")
	default:
		return nil
	}
}

// DeletePool deletes the warm pool of a group: its instances go the way of a pool that
// shrinks, or with force at once and unasked. It is there, as PendingDelete, until the last
// is gone. Errors: ValidationError.
func (s *State) DeletePool(groupName string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	switch {
	case err != nil:
		return err
	case g.WarmPool == nil:
		return validation("No warm pool found for AutoScalingGroup %s", groupName)
	}
	g.poolEnds = true
	for _, m := range s.of(g) {
		if force && m.State.warm() && m.State != WarmedTerminating.proceed() {
			s.drop(m, causeCool)
		}
	}
	s.bury(g)
	s.wake(g)
	return nil
}

// DeleteGroup deletes a group; with force its instances too, of which no hook is told, and
// it is there until the last is gone. Errors: ValidationError; ResourceInUse with
// instances; ScalingActivityInProgress while the last ones go.
func (s *State) DeleteGroup(groupName string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	list := s.of(g)
	if err := g.mayGo(list, force); err != nil {
		return err
	}
	g.deleting = true
	g.Min, g.Desired = 0, 0
	for _, m := range list {
		if m.State != Terminating.proceed() && m.State != WarmedTerminating.proceed() {
			s.drop(m, causeUser)
		}
	}
	s.bury(g)
	return nil
}

// mayGo tells why a group cannot be deleted, if so.
func (g *group) mayGo(list []*member, force bool) error {
	switch {
	case g.DeletionProtection == "prevent-all-deletion", g.DeletionProtection == "prevent-force-deletion" && force:
		return validation("The AutoScalingGroup %s has deletion protection %s: change that first.", g.Name, g.DeletionProtection)
	case force:
		return nil
	}
	for _, m := range list {
		if !leaving(m.State) || retained(m.State) {
			return resourceInUse("You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
		}
	}
	if len(list) > 0 {
		return activityInProgress("You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
	}
	return nil
}
