package policy_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// A stop that was not acted on, because there was no leader, must not be acted on once the
// instance runs again: its pods would be deleted without their grace.
func TestPastStop(t *testing.T) {
	reported := func(status corev1.ConditionStatus, after time.Duration) *corev1.Node {
		n := node(nil)
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(noon.Add(after)), LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}
		return n
	}
	later := func(n *v1beta1.Notice) { n.Time = metav1.NewTime(noon.Add(2 * time.Minute)) }
	drill := func(n *v1beta1.Notice) { n.Drill = true }
	stopping, stopped := state(notice.StateStopping), state(notice.StateStopped)
	again := state(notice.StateStopping, later)
	again.ID = "again"
	for name, tc := range map[string]struct {
		notices []v1beta1.Notice
		node    *corev1.Node
		over    bool
		gone    bool
		message string
	}{
		"its kubelet has reported since":           {[]v1beta1.Notice{stopped}, reported(corev1.ConditionTrue, time.Minute), true, false, "Ignore: the instance was started again after it was stopped"},
		"with an earlier notice":                   {[]v1beta1.Notice{stopping, stopped}, reported(corev1.ConditionTrue, time.Minute), true, false, "Ignore: the instance was started again after it was stopped"},
		"in the other order":                       {[]v1beta1.Notice{stopped, stopping}, reported(corev1.ConditionTrue, time.Minute), true, false, "Ignore: the instance was started again after it was stopped"},
		"its kubelet reported as it was stopped":   {[]v1beta1.Notice{stopped}, reported(corev1.ConditionTrue, 5*time.Second), false, true, ""},
		"it is not Ready":                          {[]v1beta1.Notice{stopped}, reported(corev1.ConditionFalse, time.Minute), false, true, ""},
		"its node has gone":                        {[]v1beta1.Notice{stopped}, nil, false, true, ""},
		"its kubelet reports while it is stopping": {[]v1beta1.Notice{stopping}, reported(corev1.ConditionTrue, time.Minute), false, false, ""},
		"it is stopped again":                      {[]v1beta1.Notice{stopped, again}, reported(corev1.ConditionTrue, time.Minute), false, false, ""},
		"it is a drill":                            {[]v1beta1.Notice{state(notice.StateStopped, drill)}, reported(corev1.ConditionTrue, time.Minute), false, true, ""},
		"a spot interruption stands":               {[]v1beta1.Notice{stopped, spot()}, reported(corev1.ConditionTrue, time.Minute), false, false, ""},
	} {
		d, ok := policy.Decide(policy.Facts{Now: noon.Add(3 * time.Minute), Node: tc.node, Notices: tc.notices})
		if !ok || d.Withdrawn != tc.over || d.InstanceGone != tc.gone {
			t.Errorf("%s: decided %v, withdrawn %v, gone %v", name, ok, d.Withdrawn, d.InstanceGone)
		}
		if tc.message != "" && d.Message != tc.message {
			t.Errorf("%s: %q", name, d.Message)
		}
	}
}
