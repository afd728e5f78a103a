package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToleratesCordon reports whether the scheduler may place the pod on a cordoned node.
func ToleratesCordon(pod *corev1.Pod) bool {
	for i := range pod.Spec.Tolerations {
		if PassesCordon(&pod.Spec.Tolerations[i]) {
			return true
		}
	}
	return false
}

// PassesCordon reports whether a toleration is one of the taint of a cordon, which has no value.
func PassesCordon(t *corev1.Toleration) bool {
	if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	return (t.Key == corev1.TaintNodeUnschedulable || t.Key == "" && t.Operator == corev1.TolerationOpExists) &&
		(t.Operator == corev1.TolerationOpExists || t.Value == "")
}

// mayReturn reports whether a successor of the pod may come back to the node: the scheduler places
// it, and may place it on a cordoned node.
func mayReturn(pod *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) != nil && ToleratesCordon(pod)
}

// hasReturned reports whether the scheduler placed the pod on the node after that was cordoned.
func (s *planContext) hasReturned(pod *corev1.Pod) bool {
	return !s.facts.Cordoned.IsZero() && pod.CreationTimestamp.After(s.facts.Cordoned) && mayReturn(pod)
}

// cameBack leaves a pod alone that the scheduler placed on the cordoned node: its successor would
// come back again, for as long as it is evicted. It is asked to leave at its last call, once: one
// that comes back after that has no time for its grace. Without a firm deadline the drain does
// not wait for it.
func cameBack(s *planContext, c *podState) (Verdict, bool) {
	if !c.returned {
		return Verdict{}, false
	}
	const why = "it tolerates the cordon, and the scheduler placed it on this node after that"
	switch {
	case c.lastCall.IsZero():
		return say(StepStays, "stays: "+why+"; the drain does not wait for it")
	case !c.pod.CreationTimestamp.Time.Before(c.lastCall): // to the second, as the API server writes it
		return say(StepStays, fmt.Sprintf("stays: %s and after its last call at %s, so it stops with the instance", why, clock(c.lastCall)))
	case s.lastCallReached(c):
		return Verdict{}, false
	}
	return say(StepWaits, fmt.Sprintf("waits: %s, so an eviction would move nothing; it is asked to stop at its last call at %s", why, clock(c.lastCall)))
}

// mentionReturn adds to the reason of a pod that leaves that its successor may come back.
func mentionReturn(v *Verdict) {
	if (v.Step == StepEvict || v.Step == StepSurge || v.Step == StepDelete) && v.Pod.DeletionTimestamp == nil && mayReturn(v.Pod) {
		v.Reason += "; its successor may come back to this node, since it tolerates the cordon"
	}
}
