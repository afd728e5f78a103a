package interruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
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
	if p.facts.node == nil || p.decision.InstanceGone || !p.plan.Empty() || p.Live == nil || p.facts.was.TerminationTime != nil {
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
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.facts.node), &node); err != nil {
		return false, fmt.Errorf("reading the node's volumes: %w", client.IgnoreNotFound(err))
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

// terminated has the instance terminated.
func terminated(ctx context.Context, p *pass) (bool, error) {
	if p.facts.node == nil || p.decision.InstanceGone || !p.plan.Empty() {
		return true, nil
	}
	return p.terminate(ctx)
}

// terminate asks the cloud. That it is asked is written down before: who starts
// after a crash does not ask again at once.
func (p *pass) terminate(ctx context.Context) (bool, error) {
	if p.Cloud == nil {
		p.outcome.until(p.facts.now.Add(terminateAgain), "cannot terminate the instance: this controller has no cloud")
		return false, nil
	}
	if last := p.facts.was.TerminationTime; last != nil && p.facts.now.Before(last.Add(terminateAgain)) {
		return p.asked(last.Time, p.facts.was.TerminationMessage)
	}
	at := microTime(p.facts.now)
	p.report.after.Status.TerminationTime, p.report.after.Status.TerminationMessage = &at, ""
	if err := p.writeDown(ctx); err != nil {
		return false, err
	}
	if err := p.Cloud.Terminate(ctx, p.facts.in.Spec.InstanceID); err != nil {
		log.FromContext(ctx).Error(err, "terminating the instance")
		p.report.after.Status.TerminationMessage = clip(fmt.Sprintf("terminating the instance: %v", err))
		return p.asked(at.Time, p.report.after.Status.TerminationMessage)
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
