package nodeindex

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestInstanceID(t *testing.T) {
	for providerID, want := range map[string]string{
		"aws:///us-east-1a/i-0a1b2c3d4e5f60718": "i-0a1b2c3d4e5f60718",
		"i-0a1b2c3d4e5f60718":                   "i-0a1b2c3d4e5f60718",
		"aws:////i-0a1b2c3d4e5f60718":           "i-0a1b2c3d4e5f60718",
		"aws:///us-east-1a/fargate-10.0.0.1":    "",
		"other:///zone/i-0a1b2c3d4e5f60718":     "",
		"kwok://node-1":                         "",
		"aws:///us-east-1a/":                    "",
		"":                                      "",
	} {
		if got := InstanceID(&corev1.Node{Spec: corev1.NodeSpec{ProviderID: providerID}}); got != want {
			t.Errorf("instance of %q: %q, want %q", providerID, got, want)
		}
	}
}

func TestReady(t *testing.T) {
	is := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: status},
		}}}
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"no node":          {nil, false},
		"no condition yet": {&corev1.Node{}, false},
		"ready":            {is(corev1.ConditionTrue), true},
		"not ready":        {is(corev1.ConditionFalse), false},
		"unknown":          {is(corev1.ConditionUnknown), false},
	} {
		if got := Ready(tc.node); got != tc.want {
			t.Errorf("%s: ready %v, want %v", name, got, tc.want)
		}
	}
}

func TestNodeByInstance(t *testing.T) {
	const id = "i-0a1b2c3d4e5f60718"
	node := func(name, instance string, age time.Duration) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///us-east-1a/" + instance},
		}
	}
	tests := map[string]struct {
		nodes []client.Object
		want  string
	}{
		"the node of the instance":                       {nodes: []client.Object{node("a", id, time.Hour), node("b", "i-1", 0)}, want: "a"},
		"no node of the instance":                        {nodes: []client.Object{node("b", "i-1", 0)}},
		"the younger of two, while one is being renamed": {nodes: []client.Object{node("old", id, time.Hour), node("new", id, 0)}, want: "new"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.nodes...).WithIndex(&corev1.Node{}, field, keys).Build()
			got, err := (&Index{reader: c}).NodeByInstance(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (tc.want == "") || got != nil && got.Name != tc.want {
				t.Errorf("node %v, want %q", got, tc.want)
			}
		})
	}
}
