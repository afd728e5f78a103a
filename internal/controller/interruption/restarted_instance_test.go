package interruption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// A stop was recorded while there was no leader, and the instance runs again when one is
// elected. Its pods and its node are left alone. A stop that was acted on completes too.
func TestStopCompletesWhenInstanceRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		acted   bool
		deleted int
	}{
		"it was not acted on": {false, 0},
		"its pods are gone":   {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(stateChange(notice.StateStopped, start)), node("a", instance), pod("web-1"))
			if tc.acted {
				w.ec2 = map[string]cloud.Instance{instance: {State: "stopped"}}
				w.settle(time.Second)
				if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
					t.Fatalf("the node of a stopped instance: %+v", w.node().Spec)
				}
			}
			runs := w.node()
			runs.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(start.Add(time.Minute))}}
			if err := w.client.Status().Update(t.Context(), runs); err != nil {
				t.Fatal(err)
			}
			w.settle(2 * time.Minute)
			if len(w.evictions) > 0 || len(w.deletions) != tc.deleted || mutate.IsMarked(w.node(), mutate.MarkAtRisk) {
				t.Errorf("evicted %v, deleted %v, node %+v", w.evictions, w.deletions, w.node().Spec)
			}
			if in := w.record(); in.Status.Phase != v1beta1.PhaseCancelled {
				t.Errorf("the record is %s: %+v", in.Status.Phase, in.Status.Conditions)
			}
		})
	}
}
