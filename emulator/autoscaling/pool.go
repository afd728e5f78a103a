package autoscaling

// Pool is the warm pool of a group; zero if it has none. The error is ValidationError.
func (s *State) Pool(groupName string) (WarmPool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil || g.WarmPool == nil {
		return WarmPool{}, err
	}
	return *g.WarmPool, nil
}

// PutPool creates or changes the warm pool of a group. Warm instances keep their state; their
// number follows the new size. Errors: ValidationError; InstanceRefreshInProgress;
// ScalingActivityInProgress while another pool is being deleted.
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
	s.scheduleEvaluation(g)
	return nil
}

// checkPool rejects an impossible warm pool. Spot instances cannot be stopped, so the pool of a
// mixed group is bought on demand.
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

// DeletePool deletes the warm pool of a group. Its instances are terminated as in a shrinking pool;
// with force immediately and without hooks. The pool stays, as PendingDelete, until the last is
// gone. Errors: ValidationError.
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
			s.terminateWithoutHooks(m, causeCool)
		}
	}
	s.removeDeleted(g)
	s.scheduleEvaluation(g)
	return nil
}

// DeleteGroup deletes a group. With force its instances are terminated without hooks, and the group
// stays until the last is gone. Errors: ValidationError; ResourceInUse with instances;
// ScalingActivityInProgress while the last instances terminate.
func (s *State) DeleteGroup(groupName string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(groupName)
	if err != nil {
		return err
	}
	list := s.of(g)
	if err := g.checkDeletable(list, force); err != nil {
		return err
	}
	g.deleting = true
	g.Min, g.Desired = 0, 0
	for _, m := range list {
		if m.State != Terminating.proceed() && m.State != WarmedTerminating.proceed() {
			s.terminateWithoutHooks(m, causeUser)
		}
	}
	s.removeDeleted(g)
	return nil
}

// checkDeletable returns why a group cannot be deleted, or nil.
func (g *group) checkDeletable(list []*member, force bool) error {
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
