package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Events of several pods share an entry only if the same happened at the same time. Every pod is
// in a Kubernetes Event.
func TestOneEntryForSeveralPods(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	pod := func(i int) v1beta1.PodStatus {
		return v1beta1.PodStatus{Namespace: "default", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint(i))}
	}
	u := NewUpdate(&v1beta1.Interruption{Status: v1beta1.InterruptionStatus{Timeline: []v1beta1.TimelineEntry{{Message: "before"}}}}, now)
	u.Record(v1beta1.ReasonCordoned, "cordoned")
	u.recordPod(v1beta1.ReasonEvicted, pod(0), "goes now")
	u.recordPod(v1beta1.ReasonEvicted, pod(1), "goes now: alone")
	u.recordPod(v1beta1.ReasonProtectionOverridden, pod(2), "goes now")
	u.recordPod(v1beta1.ReasonEvicted, pod(3), "goes now")
	u.Record(v1beta1.ReasonDrained, "drained")
	u.buildTimeline()
	want := []string{
		"before", "cordoned", "goes now (2 pods: default/pod-0, default/pod-3)", "default/pod-1 goes now: alone", "default/pod-2 goes now", "drained",
	}
	if diff := cmp.Diff(want, messages(u)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(u.events) != 6 {
		t.Errorf("%d events", len(u.events))
	}

	left := pod(3)
	u.markedEvicted = map[types.UID]v1beta1.PodStatus{left.UID: left}
	u.revertEvicted(&left)
	u.buildTimeline()
	want = []string{"before", "cordoned", "default/pod-0 goes now", "default/pod-1 goes now: alone", "default/pod-2 goes now", "drained"}
	if diff := cmp.Diff(want, messages(u)); diff != "" {
		t.Errorf("after one was taken back (-want +got):\n%s", diff)
	}
}

// Each pod is named, in entries within the limit of the CRD, for any number of pods and any
// length of names.
func TestEntriesNameAllPods(t *testing.T) {
	u := NewUpdate(&v1beta1.Interruption{}, time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC))
	var names []string
	for i := range 40 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("p", 1+5*i), i)
		names = append(names, "default/"+name)
		u.recordPod(v1beta1.ReasonEvicted, v1beta1.PodStatus{Namespace: "default", Name: name}, "goes now")
	}
	u.buildTimeline()
	listed := ""
	for _, message := range messages(u) {
		if strings.HasSuffix(message, "…") {
			t.Errorf("cut off: %s", message)
		}
		listed += message + " "
	}
	words := strings.FieldsFunc(listed, func(r rune) bool { return strings.ContainsRune(" ,;()", r) })
	for _, name := range names {
		if !slices.Contains(words, name) {
			t.Errorf("no entry names %s", name)
		}
	}
	if n := len(u.after.Status.Timeline); n > 20 {
		t.Errorf("%d entries for 40 pods", n)
	}
}

func messages(u *Update) (all []string) {
	for _, e := range u.after.Status.Timeline {
		all = append(all, e.Message)
	}
	return all
}

func TestOneEventForSeveralPods(t *testing.T) {
	of := func(name, what string) event {
		return event{
			TimelineEntry: v1beta1.TimelineEntry{Time: MicroTime(time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)), Reason: v1beta1.ReasonEvicted, Message: drillPrefix + name + " " + what},
			pod:           &corev1.ObjectReference{Namespace: "default", Name: name}, what: what,
		}
	}
	all := []event{of("a", "goes now"), of("b", "goes now"), of("c", "goes later")}
	got := timelineEntries(all)
	if len(got) != 2 || got[0].pod != nil || got[1].pod == nil {
		t.Fatalf("%+v", got)
	}
	if m := got[0].Message; !strings.HasPrefix(m, drillPrefix) || !strings.Contains(m, "2 pods: default/a, default/b") {
		t.Errorf("message %q", m)
	}
	got = kubernetesEvents(all)
	if want := drillPrefix + "3 pods: default/a goes now; default/b goes now; default/c goes later"; len(got) != 1 || got[0].Message != want {
		t.Errorf("Events %+v, want one: %q", got, want)
	}
}
