package launch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/lifecycle"
)

// atOnce is how many instances are seen to at once.
const atOnce = 8

// task is what was decided about an instance.
type task struct {
	group    string
	member   groupwatch.Member
	entry    *entry
	node     *corev1.Node
	decision lifecycle.Decision
	at       time.Time
}

// rank orders tasks: what ends a wait comes before what makes it longer.
func (t *task) rank() int {
	switch {
	case t.decision.Do == lifecycle.Complete:
		return 0
	case t.decision.Node == lifecycle.Free:
		return 1
	case t.decision.Do == lifecycle.Extend:
		return 2
	}
	return 3
}

// carryOut does what was decided, what is most urgent first, and returns how much
// that was.
func (s *Sweep) carryOut(ctx context.Context, w *world, todo []task) int {
	todo = slices.DeleteFunc(todo, func(t task) bool {
		d := &t.decision
		return d.Do == lifecycle.Nothing && d.Node == lifecycle.Nothing && !d.Alarm
	})
	slices.SortStableFunc(todo, func(a, b task) int { return cmp.Compare(a.rank(), b.rank()) })
	var done atomic.Int32
	var workers sync.WaitGroup
	next := make(chan *task)
	for range min(atOnce, len(todo)) {
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

// do does what was decided about one instance, and reports whether there was
// anything.
func (s *Sweep) do(ctx context.Context, w *world, t *task) bool {
	did := false
	if t.decision.Alarm && s.once(t.entry, "alarm") {
		s.tell(w, t, corev1.EventTypeWarning, "LaunchHeld", "the node is Ready, and its launch hook has held the instance for %s: "+
			"it is terminated at %s unless that is answered; %s", t.at.Sub(t.entry.memory.Held).Round(time.Second), moment(t.decision.Expires), t.decision.Reason)
	}
	switch t.decision.Do {
	case lifecycle.Complete:
		did = s.answer(ctx, w, t)
	case lifecycle.Extend:
		s.extend(ctx, w, t)
		did = true
	case lifecycle.GiveUp:
		s.giveUp(ctx, w, t)
	}
	if t.decision.Node != lifecycle.Nothing && s.nodeDue(t) {
		s.seeToNode(ctx, w, t)
		did = true
	}
	return did
}

// answer answers the hooks of an instance, if it still stands where it stood when
// that was decided: an answer by instance id is one to whatever is pending.
func (s *Sweep) answer(ctx context.Context, w *world, t *task) bool {
	for _, hook := range t.decision.Hooks {
		now := s.o.Clock()
		m, ok, seen := s.o.Groups.Member(t.member.InstanceID)
		if !ok || m.State != t.member.State || now.Sub(seen) > fresh || now.Sub(t.at) > hesitation {
			s.o.Groups.RequestRefresh(t.group) // decided anew, by what it is now
			return false
		}
		err := s.o.Lifecycle.Complete(ctx, cloud.Action{Group: t.group, Hook: hook, InstanceID: t.member.InstanceID}, cloud.Continue)
		s.heard(ctx, w, t, hook, true, err)
	}
	return true
}

// extend sends heartbeats.
func (s *Sweep) extend(ctx context.Context, w *world, t *task) {
	for _, hook := range t.decision.Hooks {
		err := s.o.Lifecycle.Heartbeat(ctx, cloud.Action{Group: t.group, Hook: hook, InstanceID: t.member.InstanceID})
		s.heard(ctx, w, t, hook, false, err)
	}
}

// heard notes what came of telling a hook something, and has it looked at again
// where that may have changed anything.
func (s *Sweep) heard(ctx context.Context, w *world, t *task, hook string, answer bool, err error) {
	operation := "heartbeat"
	if answer {
		operation = "answer"
	}
	outcome, result := outcomeOf(err)
	s.meters.calls.WithLabelValues(operation, result).Inc()
	said := s.told(t.entry, t.member.At.Phase, hook, s.o.Clock(), answer, outcome)
	s.tellHeard(ctx, w, t, hook, operation, said, err)
	switch {
	case outcome.Refused && said.Tries > 1:
		s.o.Groups.RequestRefreshHooks(t.group) // it may have other hooks by now
	case answer || outcome.Refused:
		s.o.Groups.RequestRefresh(t.group)
	}
	s.o.Changed(t.group)
}

// outcomeOf sorts what a call came to, and names it for metrics.
func outcomeOf(err error) (lifecycle.Said, string) {
	switch {
	case err == nil:
		return lifecycle.Said{Heard: true}, "ok"
	case cloud.IsNoAction(err):
		return lifecycle.Said{Refused: true}, "noAction"
	case cloud.IsDenied(err):
		return lifecycle.Said{Denied: err.Error()}, "denied"
	case cloud.IsBusy(err):
		return lifecycle.Said{}, "busy"
	}
	return lifecycle.Said{}, "failed"
}

// tellHeard logs what came of telling a hook something, and tells people what
// concerns them.
func (s *Sweep) tellHeard(ctx context.Context, w *world, t *task, hook, operation string, said lifecycle.Said, err error) {
	log := log.FromContext(ctx).WithValues("group", t.group, "instance", t.member.InstanceID, "hook", hook,
		"state", t.member.State, "operation", operation, "because", t.decision.Reason)
	switch {
	case err == nil && said.Answered:
		log.Info("answered a lifecycle hook")
		if s.once(t.entry, "answered "+hook) {
			s.tell(w, t, corev1.EventTypeNormal, "HookAnswered", "lifecycle hook %s was answered CONTINUE for instance %s: %s", hook, t.member.InstanceID, t.decision.Reason)
		}
	case err == nil:
		log.V(1).Info("extended a lifecycle hook")
	case cloud.IsDenied(err):
		if s.once(t.entry, "denied "+hook+operation) {
			log.Info("may not answer a lifecycle hook", "error", err.Error())
			s.failed(t.group, t.member.InstanceID, s.o.Clock(), err.Error())
			s.tellGroup(w, t.group, "HookDenied", "%s", err.Error())
		}
	default:
		log.V(1).Info("a lifecycle hook was not reached", "tries", said.Tries, "error", err.Error())
	}
}

// giveUp says that an instance is left to its hook.
func (s *Sweep) giveUp(ctx context.Context, w *world, t *task) {
	log.FromContext(ctx).Info("gave up on an instance", "group", t.group, "instance", t.member.InstanceID, "hook", t.decision.Hook, "state", t.member.State, "because", t.decision.Reason)
	s.meters.gaveUp.Inc()
	s.failed(t.group, t.member.InstanceID, s.o.Clock(), "gave up waiting: "+t.decision.Reason)
	s.tell(w, t, corev1.EventTypeWarning, "LaunchGivenUp", "instance %s is not extended any more: %s", t.member.InstanceID, t.decision.Reason)
	s.o.Changed(t.group)
}
