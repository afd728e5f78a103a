package interruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=delete

// groupRequeue is when to look again at a group from which an instance was detached.
const groupRequeue = 5 * time.Second

// terminationFacts are the facts that decide how to answer the lifecycle hooks.
func (p *pass) terminationFacts(drained bool) lifecycle.TerminationFacts {
	f := p.facts
	return lifecycle.TerminationFacts{
		Now: f.now, InstanceID: f.in.Spec.InstanceID,
		Notices: notice.Unanswered(f.in.Spec.Notices, f.was.HandledNotices),
		Was:     p.update.Status().LifecycleHooks, Seen: f.group.seen, Retain: f.group.retain,
		Owns:   func(hook string) bool { return p.owns(f, hook) },
		Action: p.decision.Action, Deadline: p.decision.Deadline, Drained: drained,
	}
}

// answers reports whether Lifeboat answers lifecycle hooks.
func (c *Controller) answers() bool { return c.Lifecycle != nil && c.Groups != nil }

// awaitVolumeDetachOfGroup waits until volumes are detached, if the NodeGroup wants that, before
// the hook lets the instance terminate.
func awaitVolumeDetachOfGroup(ctx context.Context, p *pass) (bool, error) {
	if !p.answers() {
		return true, nil
	}
	if !replacement.IsDetached(p.facts.drain().Replacement) && !lifecycle.DecideTermination(p.terminationFacts(true)).Pending {
		return true, nil
	}
	return awaitVolumeDetach(ctx, p)
}

// deleteNode deletes the node of an instance that returns to its warm pool. The instance
// registers a new node or none. Otherwise the old node would stay NotReady, and be cordoned when
// the instance returns.
func deleteNode(ctx context.Context, p *pass) (bool, error) {
	node := p.facts.node
	if node == nil || !p.plan.Empty() || p.decision.InstanceGone || !p.answers() {
		return true, nil
	}
	switch f := p.terminationFacts(true); {
	case lifecycle.Returns(f):
	case lifecycle.MayReturn(f):
		p.Groups.RequestRefresh(f.Seen.Group)
		p.outcome.wait(p.facts.now.Add(groupRequeue), fmt.Sprintf("waits to see whether the instance goes back to the warm pool of group %s", f.Seen.Group))
		return false, nil
	default:
		return true, nil
	}
	if !p.Corroborated(ctx, nil) {
		return false, nil
	}
	if err := mutate.DeleteNode(ctx, p.Client, node); err != nil {
		return false, err
	}
	p.Record(v1alpha1.ReasonNodeDeleted, fmt.Sprintf("node %s is deleted: its instance goes back to its warm pool, and comes back as a new one", node.Name))
	p.facts.node = nil
	return true, nil
}

// completeLifecycleHook waits until the lifecycle hooks of the instance are completed.
func completeLifecycleHook(_ context.Context, p *pass) (bool, error) {
	if !p.answers() {
		return true, nil
	}
	p.outcome.answerable = p.isDone()
	d := lifecycle.DecideTermination(p.terminationFacts(p.outcome.answerable))
	if !d.Pending {
		return true, nil
	}
	p.outcome.wait(d.Wake, "waits for Auto Scaling: "+d.Status.Message)
	return false, nil
}

// terminateDetached terminates an instance that nothing else terminates: it was detached from
// its group, or its group retains it.
func terminateDetached(ctx context.Context, p *pass) (bool, error) {
	s := p.Drain().Replacement
	taken := replacement.IsDetached(s)
	switch {
	case taken && p.Groups == nil && !p.decision.InstanceGone: // Lifeboat was restarted without its Auto Scaling source
		p.outcome.wait(p.facts.now.Add(terminateRetry), fmt.Sprintf("cannot see whether the instance has left group %s: start the controller with the source autoscaling", s.Group))
		return false, nil
	case p.decision.InstanceGone, !taken && (!p.facts.isRetained() || !p.plan.Empty()):
		return true, nil
	case taken && s.DetachTime == nil:
		p.Groups.RequestRefresh(s.Group)
		p.outcome.wait(p.facts.now.Add(groupRequeue), fmt.Sprintf("waits to know whether the instance has left group %s", s.Group))
		return false, nil
	}
	return p.terminate(ctx)
}

// callHooks sends heartbeats or completes the lifecycle hooks. It comes last in a pass, so that no
// pod waits for it.
func (p *pass) callHooks(ctx context.Context) error {
	if !p.answers() {
		return nil
	}
	d := lifecycle.DecideTermination(p.terminationFacts(p.outcome.answerable))
	recordAnswer(p.update, d.Status)
	if p.outcome.Completed {
		return nil
	}
	p.outcome.requeueAt(d.Wake)
	if d.Look {
		p.Groups.RequestRefresh(d.Status.Group)
	}
	if d.Do == lifecycle.Complete {
		if empty, err := p.confirmEmpty(ctx); err != nil || !empty {
			return err
		}
		if !p.Corroborated(ctx, nil) {
			return nil
		}
	}
	if d.Do != lifecycle.Nothing {
		return p.sendToHooks(ctx, d.Do)
	}
	return nil
}

// sendToHooks calls the hooks. It writes the intent first, so that a crash repeats neither call at
// once. A failed call is no error: the state of the instance shows what remains to do.
func (p *pass) sendToHooks(ctx context.Context, do lifecycle.Verb) error {
	lifecycle.Note(p.update.Status().LifecycleHooks, do, p.facts.now)
	if err := p.Checkpoint(ctx); err != nil {
		return err
	}
	s := p.update.Status().LifecycleHooks
	errs := make([]error, len(s.Hooks))
	for i, h := range s.Hooks {
		if do == lifecycle.Complete {
			errs[i] = p.Lifecycle.Complete(ctx, p.firing(s, h), cloud.Continue)
		} else {
			errs[i] = p.Lifecycle.Heartbeat(ctx, p.firing(s, h))
		}
		if errs[i] != nil {
			log.FromContext(ctx).Info("a call for a lifecycle hook failed", "hook", h.Name, "call", do, "error", errs[i].Error())
		}
	}
	lifecycle.NoteResult(s, do, errs...)
	if do == lifecycle.Complete && s.Tries == 1 {
		p.Record(v1alpha1.ReasonLifecycleActionSent, s.Message)
	}
	if do == lifecycle.Complete || errors.Join(errs...) != nil {
		p.Groups.RequestRefresh(s.Group)
	}
	p.outcome.requeueAt(lifecycle.DecideTermination(p.terminationFacts(do == lifecycle.Complete)).Wake)
	return nil
}

func (p *pass) firing(s *lifecycle.Status, h v1alpha1.LifecycleHookStatus) cloud.Action {
	return cloud.Action{Group: s.Group, Hook: h.Name, InstanceID: p.facts.in.Spec.InstanceID, Token: h.Token}
}

// recordAnswer records the state of the lifecycle hooks, and events for its changes.
func recordAnswer(u *status.Update, s *lifecycle.Status) {
	was := u.Status().LifecycleHooks
	u.Status().LifecycleHooks = s.DeepCopy()
	if s == nil {
		return
	}
	held, passed := s.WaitingSince != nil && (was == nil || was.WaitingSince == nil), s.CompletedTime != nil && (was == nil || was.CompletedTime == nil)
	switch {
	case passed:
		u.Record(v1alpha1.ReasonLifecycleHookCompleted, s.Message)
	case held && (len(s.Hooks) == 0 || !record.Drains(u.Status().Decision.Action)):
		u.Record(v1alpha1.ReasonLifecycleHookNotManaged, s.Message)
	case held:
		u.Record(v1alpha1.ReasonLifecycleHookPending, s.Message)
	}
}
