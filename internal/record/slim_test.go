package record_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// decoded returns a record as it comes from the API server: no strings are shared.
func decoded(t *testing.T, lastNotice string) *v1beta1.Interruption {
	t.Helper()
	in := &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: "i-1", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:       v1beta1.InterruptionSpec{InstanceID: "i-1", Notices: []v1beta1.Notice{{ID: "n"}}},
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		record.EnsureDrain(&in.Status).Pods = append(record.Drain(&in.Status).Pods, v1beta1.PodStatus{Namespace: "shop", Name: name, State: "Leaving", Message: "was asked to stop"})
		in.Status.Timeline = append(in.Status.Timeline, v1beta1.TimelineEntry{Reason: "PodAsked", Message: name})
	}
	in.Status.LastNoticeID = lastNotice
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	fresh := &v1beta1.Interruption{}
	if err := json.Unmarshal(text, fresh); err != nil {
		t.Fatal(err)
	}
	return fresh
}

func slim(t *testing.T, object any) any {
	t.Helper()
	slimmed, err := record.Slim(object)
	if err != nil {
		t.Fatal(err)
	}
	return slimmed
}

func TestCachedRecordIsSlim(t *testing.T) {
	want := decoded(t, "n")
	want.ManagedFields = nil
	got, ok := slim(t, decoded(t, "n")).(*v1beta1.Interruption)
	if !ok || !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("%+v\nwant %+v", got, want)
	}
	if got.ManagedFields != nil {
		t.Error("managed fields are kept in memory")
	}
	left := record.Drain(&got.Status).Pods
	if cap(left) >= 8 {
		t.Errorf("there is room for %d pods where there are %d", cap(left), len(left))
	}
	first, last := left[0], left[4]
	for of, same := range map[string]bool{
		"namespaces": isSameText(first.Namespace, last.Namespace),
		"verdicts":   isSameText(string(first.State), string(last.State)),
		"reasons":    isSameText(first.Message, last.Message),
		"entries":    isSameText(got.Status.Timeline[0].Reason, got.Status.Timeline[4].Reason),
	} {
		if !same {
			t.Errorf("%s are held more than once", of)
		}
	}
}

func isSameText(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// A full update would delete what a cached record lacks.
func TestPatchFromCachedRecordKeepsPods(t *testing.T) {
	in, _ := slim(t, decoded(t, "n")).(*v1beta1.Interruption)
	patch := client.MergeFrom(in.DeepCopy())
	in.Spec.Notices = append(in.Spec.Notices, v1beta1.Notice{ID: "later"})
	text, err := patch.Data(in)
	if err != nil || strings.Contains(string(text), "pods") || !strings.Contains(string(text), "later") {
		t.Errorf("patch %s, error %v", text, err)
	}
}

func TestSlimIgnoresOtherObjects(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "i-1"}
	if got := slim(t, gone); got != gone {
		t.Errorf("%v", got)
	}
}
