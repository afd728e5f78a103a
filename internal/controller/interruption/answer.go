package interruption

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
	"github.com/lifeboat-dev/lifeboat/internal/termination"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=delete

// terminationFacts is what it takes to decide what the lifecycle hooks are told.
func (p *pass) terminationFacts(drained bool) termination.Facts {
	f := p.facts
	return termination.Facts{
		Now: f.now, InstanceID: f.in.Spec.InstanceID,
		Notices: notice.Unanswered(record.Trusted(f.in, f.node), f.was.Answered),
		Was:     p.report.after.Status.Answer, Seen: f.group.seen, Retain: f.group.retain,
		Owns:   func(hook string) bool { return p.owns(f, hook) },
		Action: p.decision.Action, Deadline: p.decision.Deadline, Drained: drained,
	}
}

// answers reports whether lifecycle hooks are answered at all.
func (c *Controller) answers() bool { return c.Lifecycle != nil && c.Groups != nil }

// volumesOff waits for volumes to be detached before an instance is let go that
// waits for that.
func volumesOff(ctx context.Context, p *pass) (bool, error) {
	if !p.answers() {
		return true, nil
	}
	if !replacement.IsDetached(p.facts.drain().Replacement) && !termination.Decide(p.terminationFacts(true)).Pending {
		return true, nil
	}
	return detached(ctx, p)
}

// nodeDeleted deletes the node of an instance that goes back to its warm pool: it
// comes back as a new one, or not at all. Until it does, its node would only be
// NotReady, and cordoned when it comes.
func nodeDeleted(ctx context.Context, p *pass) (bool, error) {
	node := p.facts.node
	if node == nil || !p.plan.Empty() || p.decision.InstanceGone || !p.answers() || !termination.Returns(p.terminationFacts(true)) {
		return true, nil
	}
	if err := action.DeleteNode(ctx, p.Client, node); err != nil {
		return false, err
	}
	p.report.happen(v1alpha1.ReasonNodeDeleted, fmt.Sprintf("node %s is deleted: its instance goes back to its warm pool, and comes back as a new one", node.Name))
	p.facts.node = nil
	return true, nil
}

// unheld has the lifecycle hooks let the instance go, and waits until they have.
func unheld(_ context.Context, p *pass) (bool, error) {
	if !p.answers() {
		return true, nil
	}
	p.outcome.answerable = p.isDone()
	d := termination.Decide(p.terminationFacts(p.outcome.answerable))
	if !d.Pending {
		return true, nil
	}
	p.outcome.until(d.Wake, "waits for Auto Scaling: "+d.Status.Message)
	return false, nil
}

// freed has an instance terminated that nobody else terminates: it was taken out of
// its group, or its group retains it.
func freed(ctx context.Context, p *pass) (bool, error) {
	s := p.report.drain().Replacement
	taken := replacement.IsDetached(s)
	switch {
	case taken && p.Groups == nil && !p.decision.InstanceGone: // Lifeboat was restarted without its Auto Scaling source
		p.outcome.until(p.facts.now.Add(terminateAgain), fmt.Sprintf("cannot see whether the instance has left group %s: start the controller with the source autoscaling", s.Group))
		return false, nil
	case p.decision.InstanceGone, !taken && (!p.facts.isRetained() || !p.plan.Empty()):
		return true, nil
	case taken && s.DetachTime == nil:
		p.Groups.RequestRefresh(s.Group)
		p.outcome.until(p.facts.now.Add(groupAgain), fmt.Sprintf("waits to know whether the instance has left group %s", s.Group))
		return false, nil
	}
	return p.terminate(ctx)
}

// keep tells the lifecycle hooks what there is to tell them: mostly that more time
// is needed. It comes last in a pass, whatever the steps have come to, since no pod
// is to wait for it.
func (p *pass) keep(ctx context.Context) error {
	if !p.answers() {
		return nil
	}
	d := termination.Decide(p.terminationFacts(p.outcome.answerable))
	p.report.answer(d.Status)
	if p.outcome.completed {
		return nil
	}
	p.outcome.sooner(d.Wake)
	if d.Look {
		p.Groups.RequestRefresh(d.Status.Group)
	}
	switch d.Do {
	case termination.Heartbeat:
		return p.beat(ctx)
	case termination.Answer:
		if empty, err := p.confirmEmpty(ctx); err != nil || !empty {
			return err
		}
		return p.answerNow(ctx)
	}
	return nil
}

// beat extends the hooks' time. That it is done is written down before: who starts
// after a crash does not do it again at once.
func (p *pass) beat(ctx context.Context) error {
	s := p.report.after.Status.Answer
	termination.Beating(s, p.facts.now)
	if err := p.jot(ctx); err != nil {
		return err
	}
	s = p.report.after.Status.Answer
	errs := make([]error, len(s.Hooks))
	for i, h := range s.Hooks {
		if errs[i] = p.Lifecycle.Heartbeat(ctx, p.firing(s, h)); errs[i] != nil {
			log.FromContext(ctx).Error(errs[i], "extending a lifecycle hook", "hook", h.Name)
			p.Groups.RequestRefresh(s.Group)
		}
	}
	termination.Beaten(s, errs...)
	p.outcome.sooner(termination.Decide(p.terminationFacts(false)).Wake)
	return nil
}

// answerNow lets the instance go. An answer that was not taken is no error: the
// state of the instance says what there is still to do.
func (p *pass) answerNow(ctx context.Context) error {
	s := p.report.after.Status.Answer
	termination.Answering(s, p.facts.now)
	if err := p.jot(ctx); err != nil {
		return err
	}
	s = p.report.after.Status.Answer
	errs := make([]error, len(s.Hooks))
	for i, h := range s.Hooks {
		if errs[i] = p.Lifecycle.Complete(ctx, p.firing(s, h), cloud.Continue); errs[i] != nil {
			log.FromContext(ctx).Info("a lifecycle hook was not answered", "hook", h.Name, "error", errs[i].Error())
		}
	}
	told := s.Tries > 1
	termination.Answered(s, errs)
	if !told {
		p.report.happen(v1alpha1.ReasonHookAnswered, s.Message)
	}
	p.Groups.RequestRefresh(s.Group)
	p.outcome.sooner(termination.Decide(p.terminationFacts(true)).Wake)
	return nil
}

func (p *pass) firing(s *termination.Status, h v1alpha1.HookAnswer) cloud.Action {
	return cloud.Action{Group: s.Group, Hook: h.Name, InstanceID: p.facts.in.Spec.InstanceID, Token: h.Token}
}

// jot writes down what is about to be told, and nothing that the steps have found
// which is not said yet.
func (p *pass) jot(ctx context.Context) error {
	p.report.count()
	if err := p.write(ctx, p.report); err != nil {
		return err
	}
	p.facts.was = *p.report.after.Status.DeepCopy()
	return nil
}

// answer notes how the lifecycle hooks stand, and what that changes.
func (r *report) answer(s *termination.Status) {
	was := r.after.Status.Answer
	r.after.Status.Answer = s.DeepCopy()
	if s == nil {
		return
	}
	held, passed := s.HeldTime != nil && (was == nil || was.HeldTime == nil), s.CompletedTime != nil && (was == nil || was.CompletedTime == nil)
	switch {
	case passed:
		r.happen(v1alpha1.ReasonHookPassed, s.Message)
	case held && (len(s.Hooks) == 0 || !record.Drains(r.after.Status.Decision.Action)):
		r.happen(v1alpha1.ReasonHookOpen, s.Message)
	case held:
		r.happen(v1alpha1.ReasonHookHolds, s.Message)
	}
}

// isConflict reports whether a cache was behind.
func isConflict(err error) bool { return apierrors.IsConflict(err) }
