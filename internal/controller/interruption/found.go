package interruption

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// foundWithin is how long a record waits for the list of its node's pods before it is
// made without.
const foundWithin = time.Second

// Found returns the pods that have to leave a node which was cordoned ahead of its record,
// for the record to be made with them: they need not be written down then before they are
// asked to stop. Nil: they are written down in the status, as on any other node.
func (c *Controller) Found(ctx context.Context, in *v1alpha1.Interruption, node *corev1.Node) []v1alpha1.PodFound {
	if !c.Leads() || !c.muster.isToDrain(in.Name) {
		return nil
	}
	// The watch goes on when this notice has been dealt with.
	pods, known, err := c.Pods.Pods(context.WithoutCancel(ctx), node.Name)
	if err == nil && !known {
		within, cancel := context.WithTimeout(ctx, foundWithin)
		defer cancel()
		c.Pods.Await(within, node.Name)
		pods, known, err = c.Pods.Pods(context.WithoutCancel(ctx), node.Name)
	}
	if err != nil || !known {
		return nil // the pass says so
	}
	return found(pods)
}

// found returns the pods that have to leave, or none where they are more than a record
// lists.
func found(pods []*corev1.Pod) []v1alpha1.PodFound {
	var left []v1alpha1.PodFound
	for _, pod := range pods {
		if !drain.Stays(pod) {
			left = append(left, v1alpha1.PodFound{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})
		}
	}
	if len(left) > maxPodsLeft {
		return nil
	}
	return left
}

// durable is what is known to be written of a record: its status and, as long as that was
// not written, the pods that it was made with.
func durable(in *v1alpha1.Interruption) v1alpha1.InterruptionStatus {
	was := *in.Status.DeepCopy()
	if record.Unwritten(&was) {
		for _, pod := range in.Spec.Pods {
			was.PodsLeft = append(was.PodsLeft, v1alpha1.PodLeft{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})
		}
	}
	return was
}

// wasFound reports whether the record was made with all the pods that have to leave, all of
// which are about to be asked for the first time, by eviction, or leave already. Nothing need
// be written before that, and what is written of it after has time.
func (p *pass) wasFound(verdicts []drain.Verdict) bool {
	if !record.Unwritten(&p.facts.was) || p.unlisted() || !isHard(&p.decision) {
		return false
	}
	asked := map[types.UID]bool{}
	for _, v := range verdicts {
		asked[v.Pod.UID] = v.Step == drain.StepEvict
	}
	for _, v := range p.plan.Left() {
		if v.Step != drain.StepLeaving && !asked[v.Pod.UID] {
			return false
		}
	}
	return true
}
