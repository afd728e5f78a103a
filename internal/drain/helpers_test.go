package drain_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// Pods that serve volumes to others leave after them, unless a policy says otherwise.
func TestVolumeHelpersLeaveLast(t *testing.T) {
	labelled := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		order  v1beta1.Order
		want   string
	}{
		"Mountpoint for S3, in its namespace": {func(p *corev1.Pod) { p.Namespace = "mount-s3" }, "", "web Evict, helper Waits"},
		"Mountpoint for S3, in another":       {labelled("s3.csi.aws.com/mountpoint-version", "1.22"), "", "web Evict, helper Waits"},
		"JuiceFS":                             {labelled("app.kubernetes.io/name", "juicefs-mount"), "", "web Evict, helper Waits"},
		"Longhorn":                            {labelled("longhorn.io/component", "instance-manager"), "", "web Evict, helper Waits"},
		"another part of Longhorn":            {labelled("longhorn.io/component", "ui"), "", "helper Evict, web Evict"},
		"a policy says Normal":                {labelled("app.kubernetes.io/name", "juicefs-mount"), v1beta1.OrderNormal, "helper Evict, web Evict"},
		"a policy says First":                 {labelled("app.kubernetes.io/name", "juicefs-mount"), v1beta1.OrderFirst, "helper Evict, web Waits"},
	} {
		f := scenario{Pods: []podIn{{Name: "web"}, {Name: "helper"}}}.facts()
		c.change(f.Pods[1])
		if c.order != "" {
			f.Workloads = []v1beta1.Workload{{Selector: &metav1.LabelSelector{MatchLabels: f.Pods[1].Labels}, Order: c.order}}
		}
		plan := drain.NewPlan(f)
		if got := steps(plan); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if last := plan.Verdicts[1]; c.want == "web Evict, helper Waits" && !strings.Contains(last.Reason, "other pods of the node may use its volumes") {
			t.Errorf("%s: %s", name, last.Reason)
		}
	}
}
