package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	// annotationAutoscaler is the Cluster Autoscaler's annotation; "false" holds a pod (Cluster
	// Autoscaler FAQ).
	annotationAutoscaler = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// hold is a do-not-disrupt annotation in force.
type hold struct {
	by    string    // the annotation; empty if nothing holds the pod
	until time.Time // when it expires; zero means never
	typo  string    // an annotation with an invalid value
}

func (h hold) active() bool { return h.by != "" }

func (h hold) endsBefore(t time.Time) bool {
	return !h.until.IsZero() && h.until.Before(t)
}

// holdOf returns the annotation that holds the pod the longest from now.
func holdOf(pod *corev1.Pod, now time.Time) hold {
	var h hold
	for _, key := range []string{v1beta1.AnnotationDoNotDisrupt, v1beta1.AnnotationKarpenterDoNotDisrupt} {
		value, ok := pod.Annotations[key]
		if !ok || value == "false" {
			continue
		}
		if value == "true" {
			h.by, h.until = key, time.Time{}
			return h
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			h.typo = key
			continue
		}
		until := startOf(pod).Add(d)
		if until.After(now) && (h.by == "" || until.After(h.until)) {
			h.by, h.until = key, until
		}
	}
	if pod.Annotations[annotationAutoscaler] == "false" {
		h.by, h.until = annotationAutoscaler, time.Time{}
	}
	return h
}

// startOf returns the moment that durations count from: the pod's start, or its creation until
// the kubelet has started it.
func startOf(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

func respected(s *planContext, c *podState) (Verdict, bool) {
	if !s.respects(c) {
		return Verdict{}, false
	}
	if !c.hold.until.IsZero() {
		return say(StepWaits, fmt.Sprintf("waits: %s holds it until %s, and the policy respects that whatever the deadline", c.hold.by, date(c.hold.until)))
	}
	return say(StepWaits, fmt.Sprintf("waits: %s holds it, and the policy respects that whatever the deadline; remove the annotation to let it go", c.hold.by))
}

func doNotDisrupt(s *planContext, c *podState) (Verdict, bool) {
	if !c.hold.active() || !s.awaitsTurn(c) {
		return Verdict{}, false
	}
	reason := fmt.Sprintf("waits: %s holds it", c.hold.by)
	if c.turn.IsZero() && c.hold.until.IsZero() {
		reason += ";"
	}
	return say(StepWaits, reason+" "+s.untilWhen(c, c.hold.until))
}

func (s *planContext) whyOverridden(c *podState) string {
	if s.lastCallReached(c) || c.after == 0 {
		return "this is its last call"
	}
	return c.whyEarlier()
}

func (s *planContext) respects(c *podState) bool {
	return s.facts.DoNotDisrupt == v1beta1.DoNotDisruptRespect && c.hold.active()
}
