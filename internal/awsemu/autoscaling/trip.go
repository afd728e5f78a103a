package autoscaling

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
)

// trip is a journey under way.
type trip struct {
	path
	id, requestID string
	cause         string
	began         time.Time
	actions       []*action // those that hooks still have to end
}

// action is one firing of one hook.
type action struct {
	token string
	hook  Hook
	beats int       // heartbeats so far; a time-out set before the last one is void
	limit time.Time // when it ends in any case
}

// Send sets a member off on a journey: its target state changes at once, then its
// hooks are told, and when they have all let it pass it goes on. Cause explains the
// journey in the event at its end. Errors: an instance that is in no group, or a
// journey that does not exist.
func (s *State) Send(instanceID string, j Journey, cause string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[instanceID]
	p, ok := j.find()
	switch {
	case m == nil:
		return validation("Instance Id not found - No managed instance found for instance ID: %s", instanceID)
	case !ok:
		return validation("Unknown journey: %s", j)
	}
	s.set(m, p, cause)
	return nil
}

// set begins a trip. It needs the lock.
func (s *State) set(m *member, p path, cause string) {
	g := s.groups[m.Group]
	if p.end == "" {
		p.end = g.pool()
	}
	t := &trip{path: p, id: uuid.NewString(), requestID: uuid.NewString(), cause: cause, began: time.Now().UTC()}
	m.trip, m.State, m.Target = t, p.base, p.end
	if p.origin == toPool && p.destination == toGroup {
		// Instances that are kept running need no start.
		_, _ = s.ec2.Start([]string{m.InstanceID})
	}
	if p.origin == toGroup && g.DeregistrationDelay > 0 {
		s.later(g.DeregistrationDelay, m, t, func() { s.hold(m, t) })
		return
	}
	s.hold(m, t)
}

// hold tells the hooks of the transition. It needs the lock.
func (s *State) hold(m *member, t *trip) {
	g := s.groups[m.Group]
	for _, h := range g.hooks {
		if h.Transition == t.transition {
			t.actions = append(t.actions, &action{token: uuid.NewString(), hook: h, limit: time.Now().Add(h.total())})
		}
	}
	if len(t.actions) == 0 {
		s.proceed(m, t)
		return
	}
	m.State = t.base.wait()
	for _, a := range t.actions {
		s.announce(g, m, t, a)
		s.awaitHeartbeat(m, t, a)
	}
}

// awaitHeartbeat ends an action with its default result unless it is ended or gets a
// heartbeat in time. It needs the lock.
func (s *State) awaitHeartbeat(m *member, t *trip, a *action) {
	beats := a.beats
	s.later(min(a.hook.Heartbeat, time.Until(a.limit)), m, t, func() {
		if a.beats == beats && slices.Contains(t.actions, a) {
			s.resolve(m, t, a, a.hook.DefaultResult)
		}
	})
}

// resolve ends an action. The last one lets the instance go on; to abandon one ends
// them all. It needs the lock.
func (s *State) resolve(m *member, t *trip, a *action, r Result) {
	t.actions = slices.DeleteFunc(t.actions, func(o *action) bool { return o == a })
	switch {
	case r == Abandon && t.transition == Launching:
		t.actions = nil
		s.conclude(m, t, "Unsuccessful")
		s.drop(m)
	case r == Abandon || len(t.actions) == 0:
		t.actions = nil
		s.proceed(m, t)
	}
}

// drop ends an instance whose launch was abandoned; no hook is asked. It needs the
// lock.
func (s *State) drop(m *member) {
	p, _ := ScaleIn.find()
	if m.State.warm() {
		p, _ = PoolShrink.find()
	}
	t := &trip{path: p, id: uuid.NewString(), requestID: uuid.NewString(), began: time.Now().UTC(),
		cause: "an instance was taken out of service because its launch was abandoned."}
	m.trip, m.State, m.Target = t, p.base, p.end
	s.proceed(m, t)
}

// proceed does what the journey is about. It needs the lock.
func (s *State) proceed(m *member, t *trip) {
	m.State = t.base.proceed()
	ids := []string{m.InstanceID}
	var err error
	switch t.end {
	case Terminated, WarmedTerminated:
		_, err = s.ec2.Terminate(ids)
	case WarmedStopped, WarmedHibernated:
		_, err = s.ec2.Stop(ids)
	default:
		s.arrive(m, t)
		return
	}
	if in, ok := s.ec2.Instance(m.InstanceID); err != nil || !ok || in.State == ec2.Terminated || in.State == ec2.Stopped {
		// There is nothing to wait for.
		s.arrive(m, t)
	}
}

// arrive ends a trip. It needs the lock.
func (s *State) arrive(m *member, t *trip) {
	m.State, m.trip = t.end, nil
	s.conclude(m, t, "Successful")
	if t.end == Terminated || t.end == WarmedTerminated {
		s.remove(m.InstanceID)
	}
}

// follow hears what becomes of instances at EC2.
func (s *State) follow(c ec2.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[c.Instance.ID]
	if m == nil {
		return
	}
	t := m.trip
	switch c.What {
	case ec2.WasTerminated:
		if t == nil || t.end != Terminated && t.end != WarmedTerminated {
			// Nobody asked the group, and no hook can hold what is gone.
			p, _ := ScaleIn.find()
			t = &trip{path: p, id: uuid.NewString(), requestID: uuid.NewString(), began: time.Now().UTC(),
				cause: "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."}
		}
		s.arrive(m, t)
	case ec2.WasStopped:
		if t != nil && m.State == t.base.proceed() {
			s.arrive(m, t)
		}
	}
}

// later runs f after d if the member is still on the same trip. It needs the lock.
func (s *State) later(d time.Duration, m *member, t *trip, f func()) {
	s.clock.After(d, func() {
		if s.members[m.InstanceID] == m && m.trip == t {
			f()
		}
	})
}
