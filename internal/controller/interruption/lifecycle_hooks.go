package interruption

import (
	"context"
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=delete

const (
	// groupRequeue is when to look again at a group from which an instance was detached.
	groupRequeue = 5 * time.Second
	// hooksRequeue is when to look again at lifecycle hooks, in case a change is missed.
	hooksRequeue = time.Minute
)

// terminationFacts are the facts that decide about the lifecycle hooks.
func (p *pass) terminationFacts(drained bool) lifecycle.TerminationFacts {
	f := p.facts.group.Termination(p.facts.in, &p.facts.was, p.facts.now)
	f.Action, f.Deadline, f.Drained = p.decision.Action, p.decision.Deadline, drained
	return f
}

// awaitVolumeDetachOfGroup waits until volumes are detached, if the NodeGroup wants that, before
// the hook lets the instance terminate.
func awaitVolumeDetachOfGroup(ctx context.Context, p *pass) (bool, error) {
	if p.Groups == nil {
		return true, nil
	}
	if !replacement.IsDetached(p.facts.drain().Replacement) && !lifecycle.DecideTermination(p.terminationFacts(true)).Pending {
		return true, nil
	}
	return awaitVolumeDetach(ctx, p)
}

// deleteNode deletes the node of an instance that returns to its warm pool. The instance
// registers a new node or none. Otherwise the old node would stay NotReady, and be cordoned when
// the instance returns. A node that registered during the drain stays: the instance is back already,
// what is known of its group is old, and a kubelet registers its node only when it starts.
func deleteNode(ctx context.Context, p *pass) (bool, error) {
	node := p.facts.node
	if node == nil || !p.plan.Empty() || p.decision.InstanceGone || p.Groups == nil || p.keepsInstance() {
		return true, nil
	}
	if node.CreationTimestamp.After(p.facts.begunAt()) {
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
	if !p.identified(ctx) {
		return false, nil
	}
	if err := mutate.DeleteNode(ctx, p.Client, node); err != nil {
		return false, err
	}
	p.Record(v1beta1.ReasonNodeDeleted, fmt.Sprintf("node %s is deleted: its instance goes back to its warm pool, and comes back as a new one", node.Name))
	p.facts.node = nil
	return true, nil
}

// awaitLifecycleHooks waits until the lifecycle hooks of the instance are completed, and until
// that is recorded. Package lifecyclehook does both.
func awaitLifecycleHooks(_ context.Context, p *pass) (bool, error) {
	if p.Groups == nil {
		return true, nil
	}
	p.outcome.answerable = p.isDone() && !p.keepsInstance()
	d := lifecycle.DecideTermination(p.terminationFacts(p.outcome.answerable))
	if !d.Pending && !p.recordsEndOfHooks() {
		return true, nil
	}
	p.outcome.wait(p.facts.now.Add(hooksRequeue), "waits for Auto Scaling: "+d.Status.Message)
	return false, nil
}

// recordsEndOfHooks reports whether package lifecyclehook, which decides from the written status,
// is about to record that the hooks do not hold the instance any more.
func (p *pass) recordsEndOfHooks() bool {
	f := p.facts.group.Termination(p.facts.in, &p.facts.was, p.facts.now)
	s := lifecycle.DecideTermination(f).Status
	return s != nil && s.CompletedTime != nil && f.Was != nil && f.Was.CompletedTime == nil
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
	case p.keepsInstance():
		p.outcome.Waits = p.outcome.held
		return false, nil
	}
	return p.terminate(ctx)
}

// confirmHooks records when the lifecycle hooks can be completed. Every try needs that, and package
// lifecyclehook makes the calls. It comes last in a pass, so that no pod waits for it.
func (p *pass) confirmHooks(ctx context.Context) error {
	if p.Groups == nil || p.outcome.Completed {
		return nil
	}
	d := lifecycle.DecideTermination(p.terminationFacts(p.outcome.answerable))
	p.outcome.requeueAt(d.Wake)
	if d.Look {
		p.Groups.RequestRefresh(d.Status.Group)
	}
	if !d.Confirm {
		if drain := p.update.Status().Drain; drain != nil && d.Do != lifecycle.Complete && !p.outcome.answerable {
			drain.LifecycleHooksDueTime = nil // a pod has to leave again
		}
		return nil
	}
	if empty, err := p.confirmEmpty(ctx); err != nil || !empty {
		return err
	}
	if p.identified(ctx) {
		at := status.MicroTime(p.facts.now)
		p.Drain().LifecycleHooksDueTime = &at
	}
	return nil
}
