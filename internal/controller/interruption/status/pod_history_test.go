package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// The console shows one lane for each pod. It reads them from the sentences that this package
// writes.
func TestPodHistoriesAreReadAsWritten(t *testing.T) {
	asked := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	grace := int64(30)
	pod := func(name string) v1beta1.PendingPod {
		at := metav1.NewTime(asked)
		return v1beta1.PendingPod{Namespace: "shop", Name: name, UID: types.UID(name), EvictionTime: &at, GraceSeconds: &grace}
	}
	for name, prefix := range map[string]bool{"interruption": false, "drill": true} {
		t.Run(name, func(t *testing.T) {
			in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{Notices: []v1beta1.Notice{{Drill: prefix, ReceivedTime: MicroTime(asked)}}}}
			u := NewUpdate(in, asked)
			u.recordPod(v1beta1.ReasonEvicted, pod("web-1"), "goes now: no budget")
			u.recordPod(v1beta1.ReasonEvicted, pod("web-2"), "goes now: no budget")
			u.recordPod(v1beta1.ReasonProtectionOverridden, pod("db-0"), "its last call: budget shop/db allows none")
			u.recordPod(v1beta1.ReasonSurged, pod("api-0"), "its successor starts")
			u.now = asked.Add(3 * time.Second)
			u.recordNames(v1beta1.ReasonPodTerminated, "left", []string{departure(pod("web-1"), u.now), departure(pod("old-9"), u.now)})
			u.recordLost([]string{"shop/db-0"}, "was still there when its instance went")
			u.buildTimeline()
			gone := u.now
			want := []record.PodHistory{
				{Pod: "shop/web-1", State: "Left", Reason: "goes now: no budget", Asked: asked, Gone: gone, Grace: 30 * time.Second},
				{Pod: "shop/web-2", State: "Left", Reason: "goes now: no budget", Asked: asked},
				{Pod: "shop/db-0", State: "Lost", Reason: "it was still there when its instance went", Asked: asked, Gone: gone, Overridden: true},
				{Pod: "shop/api-0", State: "Left", Surged: asked},
				{Pod: "shop/old-9", State: "Left", Asked: asked, Gone: gone, Grace: 30 * time.Second},
			}
			if diff := cmp.Diff(want, record.Pods(u.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
