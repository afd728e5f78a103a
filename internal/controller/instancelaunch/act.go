package instancelaunch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// maxConcurrent is how many instances are handled concurrently.
const maxConcurrent = 8

// task is the decision about an instance.
type task struct {
	group    string
	member   groupcache.Member
	entry    *entry
	node     *corev1.Node
	decision lifecycle.Decision
	at       time.Time
}

// rank orders tasks: those that end a wait come before those that extend it.
func (t *task) rank() int {
	switch {
	case t.decision.Do == lifecycle.Complete:
		return 0
	case t.decision.Node == lifecycle.Untaint:
		return 1
	case t.decision.Do == lifecycle.Heartbeat:
		return 2
	}
	return 3
}

// carryOut carries out the decisions, the most urgent first, and returns their number.
func (s *Sweep) carryOut(ctx context.Context, w *world, todo []task) int {
	todo = slices.DeleteFunc(todo, func(t task) bool {
		d := &t.decision
		return d.Do == lifecycle.Nothing && d.Node == "" && !d.Alarm
	})
	slices.SortStableFunc(todo, func(a, b task) int { return cmp.Compare(a.rank(), b.rank()) })
	var done atomic.Int32
	var workers sync.WaitGroup
	next := make(chan *task)
	for range min(maxConcurrent, len(todo)) {
		workers.Go(func() {
			for t := range next {
				if s.do(ctx, w, t) {
					done.Add(1)
				}
			}
		})
	}
	for i := range todo {
		next <- &todo[i]
	}
	close(next)
	workers.Wait()
	return int(done.Load())
}

// do carries out the decision about one instance, and reports whether there was an action.
func (s *Sweep) do(ctx context.Context, w *world, t *task) bool {
	did := false
	if t.decision.Alarm && s.once(t.entry, "alarm") {
		s.emit(w, t, corev1.EventTypeWarning, "LaunchHeld", "the node is Ready, and its launch hook has held the instance for %s: "+
			"it is terminated at %s unless that is answered; %s", t.at.Sub(t.entry.memory.Held).Round(time.Second), moment(t.decision.Expires), t.decision.Reason)
	}
	switch t.decision.Do {
	case lifecycle.Complete, lifecycle.Heartbeat:
		did = s.call(ctx, w, t)
	case lifecycle.GiveUp:
		s.giveUp(ctx, w, t)
	}
	if t.decision.Node != "" && s.nodeDue(t) {
		s.applyToNode(ctx, w, t)
		did = true
	}
	return did
}

// call calls the hooks of an instance, and reports whether it did. A result is sent only if the
// instance is still in the state of the decision: a call by instance id completes any pending
// action.
func (s *Sweep) call(ctx context.Context, w *world, t *task) bool {
	for _, hook := range t.decision.Hooks {
		var err error
		a := cloud.Action{Group: t.group, Hook: hook, InstanceID: t.member.InstanceID}
		switch {
		case t.decision.Do == lifecycle.Heartbeat:
			err = s.o.Lifecycle.Heartbeat(ctx, a)
		case !s.isUnchanged(t):
			s.o.Groups.RequestRefresh(t.group) // it is decided again with the new state
			return false
		default:
			err = s.o.Lifecycle.Complete(ctx, a, cloud.Continue)
		}
		s.note(ctx, w, t, hook, err)
	}
	return true
}

func (s *Sweep) isUnchanged(t *task) bool {
	now := s.o.Clock()
	m, ok, seen := s.o.Groups.Member(t.member.InstanceID)
	return ok && m.State == t.member.State && now.Sub(seen) <= maxStateAge && now.Sub(t.at) <= maxDecisionAge
}

// note records the result of a call, and requests a refresh of the group if its state may have
// changed.
func (s *Sweep) note(ctx context.Context, w *world, t *task, hook string, err error) {
	do, operation := t.decision.Do, "heartbeat"
	if do == lifecycle.Complete {
		operation = "answer"
	}
	record := s.recordCall(t.entry, t.member.At.Phase, hook, s.o.Clock(), do, err)
	outcome := lifecycle.OutcomeOf(err)
	s.meters.calls.WithLabelValues(operation, string(outcome)).Inc()
	s.report(ctx, w, t, hook, operation, record, err)
	switch {
	case outcome == lifecycle.NoAction && record.Tries > 1:
		s.o.Groups.RequestRefreshHooks(t.group) // its hooks may have changed
	case do == lifecycle.Complete || outcome == lifecycle.NoAction:
		s.o.Groups.RequestRefresh(t.group)
	}
	s.o.Changed(t.group)
}

// report logs the result of a call, and emits Events for users.
func (s *Sweep) report(ctx context.Context, w *world, t *task, hook, operation string, record lifecycle.CallRecord, err error) {
	log := log.FromContext(ctx).WithValues("group", t.group, "instance", t.member.InstanceID, "hook", hook,
		"state", t.member.State, "operation", operation, "because", t.decision.Reason)
	switch {
	case err == nil && t.decision.Do == lifecycle.Complete:
		log.Info("completed a lifecycle hook")
		if s.once(t.entry, "answered "+hook) {
			s.emit(w, t, corev1.EventTypeNormal, "HookAnswered", "lifecycle hook %s was answered CONTINUE for instance %s: %s", hook, t.member.InstanceID, t.decision.Reason)
		}
	case err == nil:
		log.V(1).Info("extended a lifecycle hook")
	case cloud.IsDenied(err):
		if s.once(t.entry, "denied "+hook+operation) {
			log.Info("not permitted to complete a lifecycle hook", "error", err.Error())
			s.failed(t.group, t.member.InstanceID, s.o.Clock(), err.Error())
			s.emitForGroup(w, t.group, "HookDenied", "%s", err.Error())
		}
	default:
		log.V(1).Info("a call for a lifecycle hook failed", "tries", record.Tries, "error", err.Error())
	}
}

// giveUp reports that Lifeboat stops the heartbeats for an instance.
func (s *Sweep) giveUp(ctx context.Context, w *world, t *task) {
	log.FromContext(ctx).Info("gave up on an instance", "group", t.group, "instance", t.member.InstanceID, "hook", t.decision.Hook, "state", t.member.State, "because", t.decision.Reason)
	s.meters.gaveUp.Inc()
	s.failed(t.group, t.member.InstanceID, s.o.Clock(), "gave up waiting: "+t.decision.Reason)
	s.emit(w, t, corev1.EventTypeWarning, "LaunchGivenUp", "instance %s is not extended any more: %s", t.member.InstanceID, t.decision.Reason)
	s.o.Changed(t.group)
}
