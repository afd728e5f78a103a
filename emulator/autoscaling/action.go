package autoscaling

import "time"

// Ref names a lifecycle action as requests do: by its token, or by its instance. An instance
// identifies the action that the hook currently waits for.
type Ref struct {
	Group, Hook, InstanceID, Token string
}

// tokenSize is the length of a token (Amazon EC2 Auto Scaling API Reference,
// CompleteLifecycleAction).
const tokenSize = 36

// Complete ends a lifecycle action. The error is ValidationError for an unknown group, and for an
// action that is not active: not started, completed, timed out, or of another hook.
func (s *State) Complete(ref Ref, r Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, t, a, err := s.action(ref)
	if err != nil {
		return err
	}
	a.execution.end(r, ByAnswer)
	s.resolve(m, t, a, r)
	return nil
}

// Heartbeat restarts the heartbeat timeout of a lifecycle action. Errors as for Complete.
func (s *State) Heartbeat(ref Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, t, a, err := s.action(ref)
	if err != nil {
		return err
	}
	a.heartbeats++
	s.awaitHeartbeat(m, t, a)
	return nil
}

// action finds an active action. It needs the lock.
func (s *State) action(ref Ref) (*member, *transition, *action, error) {
	if s.groups[ref.Group] == nil {
		return nil, nil, nil, groupNotFound(ref.Group)
	}
	for _, m := range s.members {
		if m.Group != ref.Group || m.transition == nil {
			continue
		}
		for _, a := range m.transition.actions {
			named := a.token == ref.Token || ref.Token == "" && m.InstanceID == ref.InstanceID
			if a.hook.Name == ref.Hook && named && time.Since(m.transition.held) >= s.consistency.ActionAfter {
				return m, m.transition, a, nil
			}
		}
	}
	return nil, nil, nil, noActiveAction(ref)
}

// Action is an active lifecycle action. AWS has no call that lists them.
type Action struct {
	Ref
	Transition          LifecycleTransition
	Origin, Destination string
	// Deadline is when the action ends with the hook's default result, unless a heartbeat arrives.
	Deadline time.Time
}

// Actions lists the active actions of an instance, in the order of their hooks.
func (s *State) Actions(instanceID string) []Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[instanceID]
	if m == nil || m.transition == nil {
		return nil
	}
	var out []Action
	for _, a := range m.transition.actions {
		out = append(out, Action{
			Ref:        Ref{Group: m.Group, Hook: a.hook.Name, InstanceID: instanceID, Token: a.token},
			Transition: m.transition.hookTransition, Origin: m.transition.origin, Destination: m.transition.destination, Deadline: a.due,
		})
	}
	return out
}
