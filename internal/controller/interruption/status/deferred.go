package status

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// FlushInterval is the default of Writer.FlushInterval. A status write costs the API
// server as much as several evictions (kubernetes issue 142223), and most nodes have
// many transitional changes in a drain.
const FlushInterval = 10 * time.Second

// transitionalReasons are events that every later pass finds again, because it
// compares the written status with the caches.
var transitionalReasons = []string{v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonPodTerminated, v1alpha1.ReasonEvictionBlocked}

// deferUntil returns when a transitional change is written, and zero for a material
// one. It keeps nothing in memory: the pass at that time recomputes the change from
// the caches.
func (w *Writer) deferUntil(u *Update) time.Time {
	if w.FlushInterval == 0 {
		return time.Time{}
	}
	last := w.Expectations.LastWrite(u.before.Name)
	if last.IsZero() || u.material || u.written || !isTransitional(&u.before.Status, &u.after.Status) {
		return time.Time{}
	}
	at := last.Add(w.FlushInterval)
	if d := u.after.Status.Deadline; d != nil && d.Time.After(u.now) && d.Time.Time.Before(at) {
		return d.Time.Time // a pod that is gone after the deadline counts as lost
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
	if m.LifecycleHooks != nil {
		m.LifecycleHooks.Message = ""
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

// maxCorrection is by how much the written eviction time of a pod may be wrong
// without a write for that alone.
const maxCorrection = 5 * time.Second

// isNegligible reports whether two versions of a status differ at most in the order of
// pods and in the second at which they were evicted. The next write corrects that.
func isNegligible(was, is *v1alpha1.InterruptionStatus) bool {
	if was.Drain == nil || is.Drain == nil || len(was.Drain.PendingPods) != len(is.Drain.PendingPods) {
		return equality.Semantic.DeepEqual(was, is)
	}
	before, after := was.DeepCopy(), is.DeepCopy()
	before.Drain.PendingPods, after.Drain.PendingPods = byUID(before.Drain.PendingPods), byUID(after.Drain.PendingPods)
	for i := range after.Drain.PendingPods {
		before, left := &before.Drain.PendingPods[i], &after.Drain.PendingPods[i]
		if before.State != string(drain.StepLeaving) || before.EvictionTime == nil || left.EvictionTime == nil {
			continue
		}
		if left.EvictionTime.Sub(before.EvictionTime.Time).Abs() <= maxCorrection {
			left.EvictionTime, left.Reason = before.EvictionTime, before.Reason
		}
	}
	return equality.Semantic.DeepEqual(before, after)
}

// byUID returns pods in an order that does not depend on the plan.
func byUID(pods []v1alpha1.PendingPod) []v1alpha1.PendingPod {
	return slices.SortedFunc(slices.Values(pods), func(a, b v1alpha1.PendingPod) int { return strings.Compare(string(a.UID), string(b.UID)) })
}
