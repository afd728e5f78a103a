package interruption

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// FlushInterval is the default of Options.FlushInterval. A status write costs the API
// server as much as several evictions (kubernetes issue 142223), and most nodes have
// many transitional changes in a drain.
const FlushInterval = 10 * time.Second

// transitionalReasons are events that every later pass finds again, because it
// compares the written status with the caches.
var transitionalReasons = []string{v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonPodGone, v1alpha1.ReasonHeld}

// deferUntil returns when a transitional change is written, and zero for a material
// one. It keeps nothing in memory: the pass at that time recomputes the change from
// the caches.
func (c *Controller) deferUntil(r *report) time.Time {
	last := c.records.lastWrite(r.before.Name)
	if c.FlushInterval == 0 || last.IsZero() || r.material || r.written || !isTransitional(&r.before.Status, &r.after.Status) {
		return time.Time{}
	}
	at := last.Add(c.FlushInterval)
	if d := r.after.Status.Deadline; d != nil && d.Time.After(r.now) && d.Time.Time.Before(at) {
		return d.Time.Time // a pod that is seen to be gone later counts as lost
	}
	return at
}

// isTransitional reports whether two versions of a status differ only in counts,
// messages, the timeline and the state of pods that are listed already.
func isTransitional(was, is *v1alpha1.InterruptionStatus) bool {
	return equality.Semantic.DeepEqual(materialPart(was), materialPart(is))
}

// materialPart returns the part of a status that is written at once.
func materialPart(s *v1alpha1.InterruptionStatus) *v1alpha1.InterruptionStatus {
	m := s.DeepCopy()
	m.Timeline, m.LastNoticeID = nil, ""
	if m.Decision != nil {
		m.Decision.Message = ""
	}
	for i := range m.Conditions {
		c := &m.Conditions[i]
		c.Message, c.ObservedGeneration, c.LastTransitionTime = "", 0, metav1.Time{}
	}
	if m.Answer != nil {
		m.Answer.Message = ""
	}
	if m.Drain == nil {
		return m
	}
	m.Drain.Pods = v1alpha1.PodCounts{}
	m.Drain.PendingPods = nil
	if m.Drain.Replacement != nil {
		m.Drain.Replacement.Message = ""
	}
	if equality.Semantic.DeepEqual(*m.Drain, v1alpha1.DrainStatus{}) {
		m.Drain = nil
	}
	return m
}

// isMaterial reports whether an event would be lost if it were not written at once.
func isMaterial(reason string) bool { return !slices.Contains(transitionalReasons, reason) }
