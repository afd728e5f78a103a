package interruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/capacity"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// detachTimeout is for how long an instance is kept until its volumes are detached. A
	// volume that is attached when its instance goes is not attached to another node for
	// about six minutes (Kubernetes documentation, "Non-graceful node shutdown").
	detachTimeout = 2 * time.Minute
	// detachRequeue is how often the volumes of the node are read. They are not in the
	// cache of nodes, which they would make much larger.
	detachRequeue = 2 * time.Second
	// terminateRetry is when the termination of an instance that is still there is
	// requested again. Each further wait is twice as long, up to maxTerminateRetry: a person has to
	// change what refuses it.
	terminateRetry    = time.Minute
	maxTerminateRetry = time.Hour
)

// awaitVolumeDetach waits until the volumes of the pods that left are detached, while there
// is time.
func awaitVolumeDetach(ctx context.Context, p *pass) (bool, error) {
	until := p.volumesDetachBy()
	if p.facts.node == nil || p.decision.InstanceGone || !p.isDone() || p.Live == nil || !p.facts.now.Before(until) {
		return true, nil
	}
	var node corev1.Node
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.facts.node), &node); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("reading the node's volumes: %w", err)
	}
	if n := len(node.Status.VolumesAttached); n > 0 {
		p.outcome.wait(p.facts.now.Add(detachRequeue),
			fmt.Sprintf("waits for %d volumes to be detached, until %s at the latest", n, until.UTC().Format(time.RFC3339)))
		return false, nil
	}
	return true, nil
}

// volumesDetachBy is until when the instance is kept for its volumes; zero: it is not. A dead kubelet
// unmounts nothing.
func (p *pass) volumesDetachBy() time.Time {
	if p.facts.drain().TerminationTime != nil || p.isAbandoned() {
		return time.Time{}
	}
	until := p.drainedAt().Add(detachTimeout)
	if d := p.decision.Deadline; d != nil && d.Type == v1beta1.DeadlineHard && d.Time.Add(-p.Margin).Before(until) {
		return d.Time.Add(-p.Margin)
	}
	return until
}

// drainedAt is when the last pod had left.
func (p *pass) drainedAt() time.Time {
	if c := meta.FindStatusCondition(p.facts.was.Conditions, v1beta1.ConditionDrained); c != nil && c.Status == metav1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.facts.now
}

// isDone reports whether nothing on the node is waited for: no pod has to leave, or the
// time of all pods is over and the instance ends, or its kubelet is dead.
func (p *pass) isDone() bool {
	if p.plan.Empty() {
		return true
	}
	return p.hold() == nil && (p.isAbandoned() ||
		p.decision.Action == v1beta1.ActionTerminate && replacement.HandoverDue(p.plan, p.decision.Deadline, p.Margin, p.facts.now))
}

// isAbandoned reports whether only a dead kubelet keeps pods whose grace is over: it never confirms
// that they have stopped. During a reboot the kubelet returns.
func (p *pass) isAbandoned() bool {
	return nodeindex.Silent(p.facts.node) && replacement.Ends(p.decision.Notice) && p.plan.Overdue(p.facts.now)
}

// hold returns the hold of a person, or nil. It requests a pass for its end.
func (p *pass) hold() *v1beta1.UserAction {
	hold := record.Hold(p.facts.in, p.facts.now)
	if hold != nil && hold.Until != nil {
		p.outcome.requeueAt(hold.Until.Time)
	}
	return hold
}

// keepsInstance reports whether a hold forbids everything that ends the instance. Past a hard
// deadline it does not: EC2 ends the instance in any case.
func (p *pass) keepsInstance() bool {
	hold := p.hold()
	if hold == nil || p.facts.node == nil || p.decision.InstanceGone {
		return false
	}
	at := replacement.HandoverAt(p.decision.Deadline, p.Margin)
	if !at.IsZero() && !p.facts.now.Before(at) {
		return false
	}
	p.outcome.requeueAt(at)
	p.outcome.held = "waits: " + record.HoldGate(hold).Why
	return true
}

// terminateInstance requests the termination of the instance.
func terminateInstance(ctx context.Context, p *pass) (bool, error) {
	if p.facts.node == nil || p.decision.InstanceGone || !p.isDone() || p.sparesInstance() {
		return true, nil
	}
	if hold := p.hold(); hold != nil {
		p.outcome.Waits = "waits: " + record.HoldGate(hold).Why
		return false, nil
	}
	return p.terminate(ctx)
}

// confirmEmpty lists the pods of the node past the cache before an irreversible action: a
// pod may have been bound just before the node was cordoned.
func (p *pass) confirmEmpty(ctx context.Context) (bool, error) {
	if p.Live == nil || p.facts.node == nil || !p.plan.Empty() {
		return true, nil
	}
	pods, err := capacity.PodsOn(ctx, p.Live, p.facts.nodeName)
	if err != nil {
		return false, fmt.Errorf("confirming that no pod is left: %w", err)
	}
	facts := p.facts.forDrain(p.decision, &p.Options)
	facts.Pods = pods
	if plan := drain.NewPlan(facts); !plan.Empty() {
		pod := plan.Left()[0].Pod
		p.outcome.wait(p.facts.now.Add(requeueCache), fmt.Sprintf("waits for pod %s/%s, which is new on the node", pod.Namespace, pod.Name))
		return false, nil
	}
	return true, nil
}

// terminate requests the termination. The intent is written first, so that the request is
// not repeated at once after a crash. It is repeated with a backoff until EC2 confirms it. An
// instance of the control plane is never terminated, not even if policy decided before its
// node got the label.
func (p *pass) terminate(ctx context.Context) (bool, error) {
	if policy.IsControlPlane(p.facts.node) {
		return true, nil
	}
	if p.Cloud == nil {
		p.outcome.wait(p.facts.now.Add(terminateRetry), "cannot terminate the instance: this controller has no cloud")
		return false, nil
	}
	switch last := p.facts.drain().TerminationTime; {
	case last == nil:
	case last.Add(terminateRetry).Before(record.Begun(&p.facts.was)): // it was requested for an earlier drain
		p.Drain().TerminationTries = 0
	case p.facts.now.Before(p.terminateAgainAt(last.Time)):
		return p.awaitTermination(last.Time, p.facts.drain().TerminationMessage)
	case p.isTerminating(ctx):
		p.outcome.terminating, p.Drain().TerminationMessage = true, ""
		p.outcome.requeueAt(p.facts.now.Add(terminateRetry))
		return true, nil
	}
	if empty, err := p.confirmEmpty(ctx); err != nil || !empty {
		return false, err
	}
	if !p.mayEnd(ctx) {
		return false, nil
	}
	return p.requestTermination(ctx)
}

// requestTermination writes the intent, and calls EC2.
func (p *pass) requestTermination(ctx context.Context) (bool, error) {
	at, before := status.MicroTime(p.facts.now), *p.Drain()
	p.Drain().TerminationTime, p.Drain().TerminationMessage = &at, ""
	if err := p.Checkpoint(ctx); err != nil {
		// The end of the pass must not write a request that was not sent: the next one would wait for it.
		p.Drain().TerminationTime, p.Drain().TerminationMessage = before.TerminationTime, before.TerminationMessage
		return false, err
	}
	err := p.Cloud.Terminate(ctx, p.facts.in.Spec.InstanceID)
	if !cloud.IsBusy(err) { // else the wait before the next try does not grow
		p.Drain().TerminationTries++
		if err == nil || cloud.IsDenied(err) || p.Drain().TerminationTries > 1 {
			writes.Note(ctx, writes.Instance, p.facts.in.Spec.InstanceID, err)
		}
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "terminating the instance")
		p.Drain().TerminationMessage = status.Clip(fmt.Sprintf("terminating the instance: %v", err))
		return p.awaitTermination(at.Time, p.Drain().TerminationMessage)
	}
	p.outcome.Terminated = true
	return p.awaitTermination(at.Time, "")
}

// mayEnd reports whether facts agree. Nothing else ends an instance that was taken out of its
// group: EC2 confirmed the notice before that.
func (p *pass) mayEnd(ctx context.Context) bool {
	if r := p.facts.drain().Replacement; r != nil && r.DetachTime != nil || p.facts.isRetained() {
		return p.identified(ctx)
	}
	return p.Corroborated(ctx, nil)
}

// awaitTermination waits after the request: until the instance is gone or, where the cloud
// refused, for the next try.
func (p *pass) awaitTermination(at time.Time, refusal string) (bool, error) {
	again := p.terminateAgainAt(at)
	if refusal == "" {
		p.outcome.requeueAt(again)
		return true, nil
	}
	p.outcome.wait(again, fmt.Sprintf("%s; tried again at %s", refusal, again.UTC().Format(time.RFC3339)))
	return false, nil
}

// terminateAgainAt is when a termination that was requested at a time is requested again.
func (p *pass) terminateAgainAt(at time.Time) time.Time {
	wait := terminateRetry
	for range min(p.Drain().TerminationTries-1, 6) {
		wait = min(2*wait, maxTerminateRetry)
	}
	return at.Add(wait)
}

// terminates reports whether Lifeboat has requested the termination for what is decided
// now: for the action Terminate, or since the instance was detached from its group.
func (p *pass) terminates() bool {
	return p.facts.drain().TerminationTime != nil &&
		(p.decision.Action == v1beta1.ActionTerminate || replacement.IsDetached(p.facts.drain().Replacement) || p.facts.isRetained())
}
