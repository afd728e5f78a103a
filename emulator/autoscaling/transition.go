package autoscaling

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// transition is an active transition of a member.
type transition struct {
	path
	id, requestID string
	cause         string
	began         time.Time
	held          time.Time // when hooks were notified
	booting       bool      // continues when the instance runs
	actions       []*action // actions without a result yet
	activity      *Activity // as the API shows it
}

// action is one execution of one hook.
type action struct {
	execution  *HookExecution
	token      string
	hook       Hook
	heartbeats int       // number of heartbeats; a timeout that was set before the last one has no effect
	due        time.Time // end without a further heartbeat
	limit      time.Time // end in any case
}

// Send starts a transition of a member. Its target state changes immediately. Then its hooks are
// notified, and after their completion the member enters the lasting state. The event at the end
// contains cause. Errors: an instance that is in no group, or an unknown transition.
func (s *State) Send(instanceID string, j Transition, cause string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[instanceID]
	p, ok := j.path()
	switch {
	case m == nil:
		return instanceNotManaged(instanceID)
	case !ok:
		return validation("Unknown journey: %s", j)
	}
	s.startTransition(m, p, cause)
	return nil
}

// newTransition makes a member's transition, and publishes its target state. It needs the lock.
func (s *State) newTransition(m *member, p path, cause string) *transition {
	g := s.groups[m.Group]
	if p.end == "" {
		p.end = g.pool()
	}
	if m.transition != nil {
		// The new transition replaces the current one.
		m.transition.endExecutions()
		m.transition.activity.close("Cancelled", "")
	}
	t := &transition{path: p, id: string(uuid.NewUUID()), requestID: string(uuid.NewUUID()), cause: cause, began: time.Now().UTC()}
	t.activity = s.begin(g, m, t)
	m.transition, m.Target = t, p.end
	s.enter(m, p.base, cause)
	return t
}

// startTransition starts a transition. It needs the lock.
func (s *State) startTransition(m *member, p path, cause string) {
	g := s.groups[m.Group]
	t := s.newTransition(m, p, cause)
	if p.origin == toPool && p.destination == toGroup {
		// Instances in the state Warmed:Running need no start.
		_, _ = s.ec2.Start([]string{m.InstanceID})
	}
	switch delay := g.deregistration(s.timing); {
	case p.origin == toGroup && delay > 0:
		s.later(delay, m, t, func() { s.waitForHooks(m, t) })
	case p.hookTransition == Launching && g.hasTemplate():
		t.booting = true
		s.continueAfterBoot(m)
	default:
		s.waitForHooks(m, t)
	}
}

// continueAfterBoot continues a transition that waits for its instance to run, if the instance
// runs. It needs the lock.
func (s *State) continueAfterBoot(m *member) {
	t := m.transition
	if in, ok := s.ec2.Instance(m.InstanceID); t == nil || !t.booting || !ok || in.State != ec2.Running {
		return
	}
	t.booting = false
	s.later(s.timing.Launch, m, t, func() { s.waitForHooks(m, t) })
}

// waitForHooks notifies the hooks of the transition. It needs the lock.
func (s *State) waitForHooks(m *member, t *transition) {
	g := s.groups[m.Group]
	t.held = time.Now()
	for _, h := range g.hooks {
		if h.Transition == t.hookTransition {
			token := string(uuid.NewUUID())
			t.actions = append(t.actions, &action{token: token, hook: h, limit: time.Now().Add(h.total()), execution: s.recordExecution(m, h, token)})
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

// awaitHeartbeat ends an action with its default result unless a completion or a heartbeat arrives
// in time. It needs the lock.
func (s *State) awaitHeartbeat(m *member, t *transition, a *action) {
	beats, left := a.heartbeats, min(a.hook.Heartbeat, time.Until(a.limit))
	a.due = time.Now().Add(left)
	s.later(left, m, t, func() {
		if a.heartbeats == beats && slices.Contains(t.actions, a) {
			a.execution.end(a.hook.DefaultResult, ByTimeout)
			s.resolve(m, t, a, a.hook.DefaultResult)
		}
	})
}

// resolve ends an action. After the last action the transition continues; an abandoned one ends
// all. It needs the lock.
func (s *State) resolve(m *member, t *transition, a *action, r Result) {
	t.actions = slices.DeleteFunc(t.actions, func(o *action) bool { return o == a })
	if r == Abandon {
		t.endExecutions()
	}
	switch {
	case r == Abandon && t.hookTransition == Launching:
		t.actions = nil
		s.conclude(m, t, "Unsuccessful")
		t.activity.close("Cancelled", "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token "+a.token+" was abandoned: it was completed so, or timed out.")
		s.terminateWithoutHooks(m, "an instance was taken out of service because its launch was abandoned.")
	case r == Abandon && s.groups[m.Group].Retain:
		t.actions, m.transition = nil, nil
		t.activity.close("Failed", "The lifecycle action was abandoned, and the instance is retained.")
		s.enter(m, t.base.retained(), "the terminate hook was abandoned")
	case r == Abandon && t.end != Terminated && t.end != WarmedTerminated && s.groups[m.Group].hasTemplate():
		// The retention policy has the state Warmed:Pending:Retained. It follows that without the
		// policy an instance whose return was abandoned is terminated.
		t.actions = nil
		t.activity.close("Cancelled", "The lifecycle action was abandoned.")
		s.terminateWithoutHooks(m, "an instance was taken out of service because its return to the warm pool was abandoned.")
	case r == Abandon || len(t.actions) == 0:
		t.actions = nil
		s.proceed(m, t)
	}
}

// terminateWithoutHooks terminates an instance without notifying hooks. It needs the lock.
func (s *State) terminateWithoutHooks(m *member, cause string) {
	p, _ := ScaleIn.path()
	if m.State.warm() {
		p, _ = PoolShrink.path()
	}
	if t := m.transition; t != nil && t.base == p.base {
		// The instance is being terminated already: stop waiting for its hooks.
		t.actions = nil
		s.proceed(m, t)
		return
	}
	s.proceed(m, s.newTransition(m, p, cause))
}

// proceed changes the instance at EC2 as the transition requires. It needs the lock.
func (s *State) proceed(m *member, t *transition) {
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
		if s.groups[m.Group].hasTemplate() {
			s.later(s.timing.Settle, m, t, func() { s.finish(m, t) })
			return
		}
		s.finish(m, t)
		return
	}
	if in, ok := s.ec2.Instance(m.InstanceID); err != nil || !ok || in.State == ec2.Terminated || in.State == ec2.Stopped {
		// EC2 has nothing left to do.
		s.finish(m, t)
	}
}

// finish ends a transition. It needs the lock.
func (s *State) finish(m *member, t *transition) {
	m.transition = nil
	if t.end == InService {
		m.inServiceSince = time.Now()
	}
	s.enter(m, t.end, t.cause)
	s.conclude(m, t, "Successful")
	t.activity.close("Successful", "")
	if t.end == Terminated || t.end == WarmedTerminated {
		s.remove(m.InstanceID)
		return
	}
	s.checkHealth(m)
}

// later runs f after d if the member is still in the same transition. It needs the lock.
func (s *State) later(d time.Duration, m *member, t *transition, f func()) {
	s.clock.After(d, func() {
		if s.members[m.InstanceID] == m && m.transition == t {
			f()
		}
	})
}
