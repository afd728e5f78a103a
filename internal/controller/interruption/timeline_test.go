package interruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// What happened to several pods at the same moment is one entry; what happened at
// another, or was something else, is not. Events are told of each.
func TestOneEntryTellsOfSeveralPods(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	pod := func(i int) v1alpha1.PendingPod {
		return v1alpha1.PendingPod{Namespace: "default", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint(i))}
	}
	r := begin(&v1alpha1.Interruption{Status: v1alpha1.InterruptionStatus{Timeline: []v1alpha1.TimelineEntry{{Message: "before"}}}}, now)
	r.happen(v1alpha1.ReasonCordoned, "cordoned")
	r.happenToPod(v1alpha1.ReasonEvicted, pod(0), "goes now")
	r.happenToPod(v1alpha1.ReasonEvicted, pod(1), "goes now: alone")
	r.happenToPod(v1alpha1.ReasonOverridden, pod(2), "goes now")
	r.happenToPod(v1alpha1.ReasonEvicted, pod(3), "goes now")
	r.happen(v1alpha1.ReasonDrained, "drained")
	r.timeline()
	want := []string{
		"before", "cordoned", "goes now (2 pods: default/pod-0, default/pod-3)", "default/pod-1 goes now: alone", "default/pod-2 goes now", "drained",
	}
	if diff := cmp.Diff(want, messages(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.happened) != 6 {
		t.Errorf("%d things happened, of which Events tell", len(r.happened))
	}

	left := pod(3)
	r.tell(left.UID, left)
	r.retract(&left)
	r.timeline()
	want = []string{"before", "cordoned", "default/pod-0 goes now", "default/pod-1 goes now: alone", "default/pod-2 goes now", "drained"}
	if diff := cmp.Diff(want, messages(r)); diff != "" {
		t.Errorf("after one was taken back (-want +got):\n%s", diff)
	}
}

// However many pods there are, and however long their names: each is named, in entries
// that the CRD takes.
func TestEntriesNameAllPods(t *testing.T) {
	r := begin(&v1alpha1.Interruption{}, time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC))
	var names []string
	for i := range 40 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("p", 5*i), i)
		names = append(names, "default/"+name)
		r.happenToPod(v1alpha1.ReasonEvicted, v1alpha1.PendingPod{Namespace: "default", Name: name}, "goes now")
	}
	r.timeline()
	var told []string
	for _, message := range messages(r) {
		if strings.HasSuffix(message, "…") {
			t.Errorf("cut off: %s", message)
		}
		told = append(told, podsIn(message)...)
	}
	if diff := cmp.Diff(names, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(r.after.Status.Timeline); n > 20 {
		t.Errorf("%d entries for 40 pods", n)
	}
}

func messages(r *report) (all []string) {
	for _, e := range r.after.Status.Timeline {
		all = append(all, e.Message)
	}
	return all
}
