package groupcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInstancesOf(t *testing.T) {
	node := func(providerID string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	}
	got := InstancesOf([]*corev1.Node{
		node("aws:///eu-west-1a/i-0000000000000000c", nil), node("aws:///eu-west-1a/i-0000000000000000a", nil),
		node("aws:///eu-west-1a/i-0000000000000000b", map[string]string{nodePoolLabel: "default"}),
		node("", nil), node("gce://project/zone/name", nil), node("aws:///eu-west-1a/i-0000000000000000a", nil),
	})
	if diff := cmp.Diff([]string{"i-0000000000000000a", "i-0000000000000000c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
