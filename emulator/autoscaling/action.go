package autoscaling

import "time"

// Ref names a lifecycle action as requests do: by its token, or else by its instance,
// which means the one that the hook is waiting for now.
type Ref struct {
	Group, Hook, InstanceID, Token string
}

// tokenSize is the length of a token (Amazon EC2 Auto Scaling API Reference,
// CompleteLifecycleAction).
const tokenSize = 36

// Complete ends a lifecycle action. The error is ValidationError for a group that does
// not exist and for an action that is not active: not begun, ended, timed out, or of
// another hook.
func (s *State) Complete(ref Ref, r Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, t, a, err := s.action(ref)
	if err != nil {
		return err
	}
	a.firing.end(r, ByAnswer)
	s.resolve(m, t, a, r)
	return nil
}

// Heartbeat gives a lifecycle action its hook's heartbeat time anew. Errors as for
// Complete.
func (s *State) Heartbeat(ref Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, t, a, err := s.action(ref)
	if err != nil {
		return err
	}
	a.beats++
	s.awaitHeartbeat(m, t, a)
	return nil
}

// action finds an active action. It needs the lock.
func (s *State) action(ref Ref) (*member, *trip, *action, error) {
	if s.groups[ref.Group] == nil {
		return nil, nil, nil, groupNotFound(ref.Group)
	}
	for _, m := range s.members {
		if m.Group != ref.Group || m.trip == nil {
			continue
		}
		for _, a := range m.trip.actions {
			named := a.token == ref.Token || ref.Token == "" && m.InstanceID == ref.InstanceID
			if a.hook.Name == ref.Hook && named && time.Since(m.trip.held) >= s.consistency.ActionAfter {
				return m, m.trip, a, nil
			}
		}
	}
	return nil, nil, nil, noActiveAction(ref)
}

// Action is a lifecycle action that waits for its end. On AWS no call lists them.
type Action struct {
	Ref
	Transition          Transition
	Origin, Destination string
	// Deadline is when it ends with the hook's default result unless there is a heartbeat.
	Deadline time.Time
}

// Actions lists the active actions of an instance, in the order of their hooks.
func (s *State) Actions(instanceID string) []Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[instanceID]
	if m == nil || m.trip == nil {
		return nil
	}
	var out []Action
	for _, a := range m.trip.actions {
		out = append(out, Action{
			Ref:        Ref{Group: m.Group, Hook: a.hook.Name, InstanceID: instanceID, Token: a.token},
			Transition: m.trip.transition, Origin: m.trip.origin, Destination: m.trip.destination, Deadline: a.due,
		})
	}
	return out
}
