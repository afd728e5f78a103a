package autoscaling

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// trip is a journey under way.
type trip struct {
	path
	id, requestID string
	cause         string
	began         time.Time
	held          time.Time // when hooks were told
	booting       bool      // it goes on when the instance runs
	actions       []*action // those that hooks still have to end
	activity      *Activity // what is shown of it
}

// action is one firing of one hook.
type action struct {
	firing *Firing
	token  string
	hook   Hook
	beats  int       // heartbeats so far; a time-out set before the last one is void
	due    time.Time // when it ends for want of a heartbeat
	limit  time.Time // when it ends in any case
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
		return instanceNotManaged(instanceID)
	case !ok:
		return validation("Unknown journey: %s", j)
	}
	s.set(m, p, cause)
	return nil
}

// depart makes a member's trip, and has its target state known. It needs the lock.
func (s *State) depart(m *member, p path, cause string) *trip {
	g := s.groups[m.Group]
	if p.end == "" {
		p.end = g.pool()
	}
	if m.trip != nil {
		// Whatever it was about is no more.
		m.trip.lapse()
		m.trip.activity.close("Cancelled", "")
	}
	t := &trip{path: p, id: uuid.NewString(), requestID: uuid.NewString(), cause: cause, began: time.Now().UTC()}
	t.activity = s.begin(g, m, t)
	m.trip, m.Target = t, p.end
	s.enter(m, p.base, cause)
	return t
}

// set begins a trip. It needs the lock.
func (s *State) set(m *member, p path, cause string) {
	g := s.groups[m.Group]
	t := s.depart(m, p, cause)
	if p.origin == toPool && p.destination == toGroup {
		// Instances that are kept running need no start.
		_, _ = s.ec2.Start([]string{m.InstanceID})
	}
	switch delay := g.deregistration(s.timing); {
	case p.origin == toGroup && delay > 0:
		s.later(delay, m, t, func() { s.hold(m, t) })
	case p.transition == Launching && g.lives():
		t.booting = true
		s.booted(m)
	default:
		s.hold(m, t)
	}
}

// booted lets a trip that waits for its instance to run go on, if it runs. It needs the
// lock.
func (s *State) booted(m *member) {
	t := m.trip
	if in, ok := s.ec2.Instance(m.InstanceID); t == nil || !t.booting || !ok || in.State != ec2.Running {
		return
	}
	t.booting = false
	s.later(s.timing.Launch, m, t, func() { s.hold(m, t) })
}

// hold tells the hooks of the transition. It needs the lock.
func (s *State) hold(m *member, t *trip) {
	g := s.groups[m.Group]
	t.held = time.Now()
	for _, h := range g.hooks {
		if h.Transition == t.transition {
			t.actions = append(t.actions, &action{token: uuid.NewString(), hook: h, limit: time.Now().Add(h.total()), firing: s.fire(m, h)})
		}
	}
	if len(t.actions) == 0 {
		s.proceed(m, t)
		return
	}
	t.activity.status("MidLifecycleAction", 60)
	s.enter(m, t.base.wait(), t.cause)
	for _, a := range t.actions {
		s.announce(g, m, t, a)
		s.awaitHeartbeat(m, t, a)
	}
}

// awaitHeartbeat ends an action with its default result unless it is ended or gets a
// heartbeat in time. It needs the lock.
func (s *State) awaitHeartbeat(m *member, t *trip, a *action) {
	beats, left := a.beats, min(a.hook.Heartbeat, time.Until(a.limit))
	a.due = time.Now().Add(left)
	s.later(left, m, t, func() {
		if a.beats == beats && slices.Contains(t.actions, a) {
			a.firing.end(a.hook.DefaultResult, ByTimeout)
			s.resolve(m, t, a, a.hook.DefaultResult)
		}
	})
}

// resolve ends an action. The last one lets the instance go on; to abandon one ends
// them all. It needs the lock.
func (s *State) resolve(m *member, t *trip, a *action, r Result) {
	t.actions = slices.DeleteFunc(t.actions, func(o *action) bool { return o == a })
	if r == Abandon {
		t.lapse()
	}
	switch {
	case r == Abandon && t.transition == Launching:
		t.actions = nil
		s.conclude(m, t, "Unsuccessful")
		t.activity.close("Cancelled", "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token "+a.token+" was abandoned: it was completed so, or timed out.")
		s.drop(m, "an instance was taken out of service because its launch was abandoned.")
	case r == Abandon && s.groups[m.Group].Retain:
		t.actions, m.trip = nil, nil
		t.activity.close("Failed", "The lifecycle action was abandoned, and the instance is retained.")
		s.enter(m, t.base.retained(), "the terminate hook was abandoned")
	case r == Abandon && t.end != Terminated && t.end != WarmedTerminated && s.groups[m.Group].lives():
		// That retention knows the state Warmed:Pending:Retained tells that without it
		// an instance whose return was abandoned is terminated.
		t.actions = nil
		t.activity.close("Cancelled", "The lifecycle action was abandoned.")
		s.drop(m, "an instance was taken out of service because its return to the warm pool was abandoned.")
	case r == Abandon || len(t.actions) == 0:
		t.actions = nil
		s.proceed(m, t)
	}
}

// drop ends an instance; no hook is asked. It needs the lock.
func (s *State) drop(m *member, cause string) {
	p, _ := ScaleIn.find()
	if m.State.warm() {
		p, _ = PoolShrink.find()
	}
	if t := m.trip; t != nil && t.base == p.base {
		// It goes already: its hooks are not waited for any more.
		t.actions = nil
		s.proceed(m, t)
		return
	}
	s.proceed(m, s.depart(m, p, cause))
}

// proceed does what the journey is about. It needs the lock.
func (s *State) proceed(m *member, t *trip) {
	s.enter(m, t.base.proceed(), t.cause)
	t.activity.status("InProgress", 80)
	ids := []string{m.InstanceID}
	var err error
	switch t.end {
	case Terminated, WarmedTerminated:
		_, err = s.ec2.Terminate(ids)
	case WarmedStopped:
		_, err = s.ec2.Stop(ids)
	case WarmedHibernated:
		_, err = s.ec2.Hibernate(ids)
	default:
		if s.groups[m.Group].lives() {
			s.later(s.timing.Settle, m, t, func() { s.arrive(m, t) })
			return
		}
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
	m.trip = nil
	if t.end == InService {
		m.arrived = time.Now()
	}
	s.enter(m, t.end, t.cause)
	s.conclude(m, t, "Successful")
	t.activity.close("Successful", "")
	if t.end == Terminated || t.end == WarmedTerminated {
		s.remove(m.InstanceID)
		return
	}
	s.examine(m)
}

// later runs f after d if the member is still on the same trip. It needs the lock.
func (s *State) later(d time.Duration, m *member, t *trip, f func()) {
	s.clock.After(d, func() {
		if s.members[m.InstanceID] == m && m.trip == t {
			f()
		}
	})
}
