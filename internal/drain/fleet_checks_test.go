package drain_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// ready counts, by fleet, the pods that are really Ready: those on other nodes, and those on
// this node, surged or not, that were not asked to stop.
func (w *world) ready() map[*fleet]int32 {
	up := map[*fleet]int32{}
	for _, f := range w.fleets {
		up[f] = f.away
	}
	for _, p := range w.facts.Pods {
		if f := w.fleetOf(p); f != nil && ready(p) && p.DeletionTimestamp == nil &&
			p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			up[f]++
		}
	}
	return up
}

// checkReplaced checks a surged pod that leaves because of its successor. Its ReplicaSet must have as
// many Ready pods as it wants, and no pod may leave without a reason.
func (w *world) checkReplaced(t *testing.T, v drain.Verdict, up map[*fleet]int32) {
	t.Helper()
	if _, surged := v.Pod.Labels[v1beta1.LabelSurged]; !surged {
		return
	}
	f := w.fleetOf(v.Pod)
	if !ready(v.Pod) {
		return
	}
	up[f]--
	want := *f.set.Spec.Replicas
	origin, _ := drain.SurgedFrom(v.Pod)
	switch {
	case strings.Contains(v.Reason, "its successor is Ready"):
		if up[f] < want {
			t.Errorf("%s: %s goes and leaves %d of %d Ready: %s", hour(w.now), v.Pod.Name, up[f], want, v.Reason)
		}
	case want == 0, !f.ends.IsZero() && !w.now.Before(f.ends), w.now.Sub(origin.Time) >= 5*time.Minute:
	case !v.LastCall.IsZero() && (!w.now.Before(v.LastCall) || strings.Contains(v.Reason, "leave after it")):
	default:
		t.Errorf("%s: %s leaves without a reason, %d of %d Ready: %s", hour(w.now), v.Pod.Name, up[f], want, v.Reason)
	}
}

// checkSurge checks that only pods that may run twice are surged, only once, and not after their
// last call.
func (w *world) checkSurge(t *testing.T, v drain.Verdict) {
	t.Helper()
	_, before := v.Pod.Labels[v1beta1.LabelSurged]
	f := w.fleetOf(v.Pod)
	if before || f == nil || !f.owns(v.Pod) || !ready(v.Pod) || v.Origin == nil || v.Origin.UID != f.set.UID || *f.set.Spec.Replicas == 0 {
		t.Errorf("%s: surges %s: %s", hour(w.now), v.Pod.Name, v.Reason)
	}
	if !v.LastCall.IsZero() && !w.now.Before(v.LastCall) {
		t.Errorf("%s: surges %s past its last call at %s: %s", hour(w.now), v.Pod.Name, hour(v.LastCall), v.Reason)
	}
}
