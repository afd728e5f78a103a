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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// detachPatience is for how long an instance is kept for its volumes to be
	// detached. A volume that is still attached when its instance goes is held
	// back from other nodes for some six minutes (Kubernetes documentation,
	// "Non-graceful node shutdown").
	detachPatience = 2 * time.Minute
	// detachAgain is how often the node is asked which volumes it has. They are
	// left out of the cache of nodes, which would be much larger for them.
	detachAgain = 2 * time.Second
	// terminateAgain is when an instance that was asked to terminate, and is
	// still there, is asked again.
	terminateAgain = time.Minute
)

// detached waits until the volumes of the pods that left are detached, where the
// time allows.
func detached(ctx context.Context, p *pass) (bool, error) {
	if p.facts.node == nil || p.decision.InstanceGone || !p.isDone() || p.Live == nil || p.facts.drain().TerminationTime != nil {
		return true, nil
	}
	until := p.drainedAt().Add(detachPatience)
	if d := p.decision.Deadline; d != nil && d.Type == v1alpha1.DeadlineHard && d.Time.Add(-p.Margin).Before(until) {
		until = d.Time.Add(-p.Margin)
	}
	if !p.facts.now.Before(until) {
		return true, nil
	}
	var node corev1.Node
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.facts.node), &node); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("reading the node's volumes: %w", err)
	}
	if n := len(node.Status.VolumesAttached); n > 0 {
		p.outcome.until(p.facts.now.Add(detachAgain),
			fmt.Sprintf("waits for %d volumes to be detached, until %s at the latest", n, until.UTC().Format(time.RFC3339)))
		return false, nil
	}
	return true, nil
}

// drainedAt is when no pod was left that had to leave.
func (p *pass) drainedAt() time.Time {
	if c := meta.FindStatusCondition(p.facts.was.Conditions, v1alpha1.ConditionDrained); c != nil && c.Status == metav1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.facts.now
}

// isDone reports whether nothing on the node is waited for: no pod has to leave, or, of
// an instance that is drained in order to be terminated, the time of all pods is over.
// A kubelet that is dead never confirms that a pod has stopped.
func (p *pass) isDone() bool {
	if p.plan.Empty() {
		return true
	}
	return p.decision.Action == v1alpha1.ActionTerminate && !p.held() &&
		replacement.HandoverDue(p.plan, p.decision.Deadline, p.Margin, p.facts.now)
}

// held reports whether a person holds the drain.
func (p *pass) held() bool { return record.Hold(p.facts.in, p.facts.now) != nil }

// terminated requests the termination of the instance.
func terminated(ctx context.Context, p *pass) (bool, error) {
	if p.facts.node == nil || p.decision.InstanceGone || !p.isDone() {
		return true, nil
	}
	if hold := record.Hold(p.facts.in, p.facts.now); hold != nil {
		at := p.facts.now.Add(terminateAgain)
		if hold.Until != nil {
			at = hold.Until.Time
		}
		p.outcome.until(at, "waits: "+record.HoldGate(hold).Why)
		return false, nil
	}
	return p.terminate(ctx)
}

// confirmEmpty lists the pods of the node past every cache before an act that cannot be
// undone: a pod may have been bound just before the node was cordoned.
func (p *pass) confirmEmpty(ctx context.Context) (bool, error) {
	if p.Live == nil || p.facts.node == nil || !p.plan.Empty() {
		return true, nil
	}
	pods, err := p.podsOn(ctx, p.facts.nodeName)
	if err != nil {
		return false, fmt.Errorf("confirming that no pod is left: %w", err)
	}
	facts := p.facts.forDrain(p.decision, p.Margin)
	facts.Pods = pods
	if plan := drain.NewPlan(facts); !plan.Empty() {
		pod := plan.Left()[0].Pod
		p.outcome.until(p.facts.now.Add(lookAgain), fmt.Sprintf("waits for pod %s/%s, which is new on the node", pod.Namespace, pod.Name))
		return false, nil
	}
	return true, nil
}

// terminate asks the cloud. That it is asked is written down before: who starts
// after a crash does not ask again at once.
func (p *pass) terminate(ctx context.Context) (bool, error) {
	if p.Cloud == nil {
		p.outcome.until(p.facts.now.Add(terminateAgain), "cannot terminate the instance: this controller has no cloud")
		return false, nil
	}
	if last := p.facts.drain().TerminationTime; last != nil && p.facts.now.Before(last.Add(terminateAgain)) {
		return p.asked(last.Time, p.facts.drain().TerminationMessage)
	}
	if empty, err := p.confirmEmpty(ctx); err != nil || !empty {
		return false, err
	}
	at := microTime(p.facts.now)
	p.report.drain().TerminationTime, p.report.drain().TerminationMessage = &at, ""
	if err := p.writeDown(ctx); err != nil {
		return false, err
	}
	if err := p.Cloud.Terminate(ctx, p.facts.in.Spec.InstanceID); err != nil {
		log.FromContext(ctx).Error(err, "terminating the instance")
		p.report.drain().TerminationMessage = clip(fmt.Sprintf("terminating the instance: %v", err))
		return p.asked(at.Time, p.report.drain().TerminationMessage)
	}
	p.outcome.terminated = true
	return p.asked(at.Time, "")
}

// asked waits after the cloud was asked: for the instance to go or, where the
// cloud refused, for the next try.
func (p *pass) asked(at time.Time, refusal string) (bool, error) {
	again := at.Add(terminateAgain)
	if refusal == "" {
		p.outcome.sooner(again)
		return true, nil
	}
	p.outcome.until(again, refusal+"; tried again every minute")
	return false, nil
}
