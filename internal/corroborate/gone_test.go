package corroborate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
)

// EC2 may not know a new instance yet, so an unknown one is gone only if its Node is old enough.
func TestGone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	of := func(age time.Duration) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	}
	named := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	stopped := func(name string) *cloud.Instance {
		return &cloud.Instance{ID: id, State: "stopped", DNSName: name}
	}
	in := func(state string) *cloud.Instance { return &cloud.Instance{ID: id, State: state} }
	for name, tc := range map[string]struct {
		instance          *cloud.Instance
		node              *corev1.Node
		gone, terminating corroborate.Answer
	}{
		"unknown, its Node is new":    {nil, of(time.Minute), corroborate.Unknown, corroborate.Unknown},
		"unknown, its Node is old":    {nil, of(time.Hour), corroborate.Agree, corroborate.Agree},
		"unknown, without a Node":     {nil, nil, corroborate.Agree, corroborate.Agree},
		"terminated, its Node is new": {in("terminated"), of(time.Minute), corroborate.Agree, corroborate.Agree},
		"shutting down":               {in("shutting-down"), of(time.Hour), corroborate.Differ, corroborate.Agree},
		"stopped":                     {in("stopped"), of(time.Hour), corroborate.Agree, corroborate.Differ},
		"stopped, of this name":       {stopped("ip-10-0-1-5.ec2.internal"), named("ip-10-0-1-5.ec2.internal"), corroborate.Agree, corroborate.Differ},
		"stopped, of another name":    {stopped("ip-10-0-9-9.ec2.internal"), named("ip-10-0-1-5.ec2.internal"), corroborate.Differ, corroborate.Differ},
		"running":                     {in("running"), of(time.Hour), corroborate.Differ, corroborate.Differ},
	} {
		if got := corroborate.Gone(tc.instance, tc.node, now); got.Answer != tc.gone || got.Agrees() != (got.Why == "") {
			t.Errorf("%s: gone is %+v, want %s", name, got, tc.gone)
		}
		if got := corroborate.Terminating(tc.instance, tc.node, now); got.Answer != tc.terminating {
			t.Errorf("%s: terminating is %+v, want %s", name, got, tc.terminating)
		}
	}
}
