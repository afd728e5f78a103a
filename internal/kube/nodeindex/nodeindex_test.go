package nodeindex

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
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
	ready := func(name string, age time.Duration, is bool) *corev1.Node {
		n := node(name, id, age)
		c := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: n.CreationTimestamp}
		if is {
			c.Status = corev1.ConditionTrue
		}
		n.Status.Conditions = []corev1.NodeCondition{c}
		return n
	}
	tests := map[string]struct {
		nodes          []client.Object
		want, conflict string
	}{
		"the node of the instance":                   {nodes: []client.Object{node("a", id, time.Hour), node("b", "i-1", 0)}, want: "a"},
		"no node of the instance":                    {nodes: []client.Object{node("b", "i-1", 0)}},
		"the Ready one, if the instance was renamed": {nodes: []client.Object{ready("old", time.Hour, false), ready("new", 0, true)}, want: "new"},
		"the Ready one, also if it is the older":     {nodes: []client.Object{ready("old", time.Hour, true), ready("new", 0, false)}, want: "old"},
		"the one that was Ready last, if none is":    {nodes: []client.Object{ready("old", time.Hour, false), ready("new", 0, false)}, want: "new"},
		"none of two Ready ones":                     {nodes: []client.Object{ready("b", time.Hour, true), ready("a", 0, true)}, conflict: "a b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tc.nodes...).WithIndex(&corev1.Node{}, field, keys).Build()
			got, err := (&Index{reader: c}).NodeByInstance(t.Context(), id)
			if conflict := (*corroborate.ConflictError)(nil); tc.conflict != "" {
				if !errors.As(err, &conflict) || got != nil || strings.Join(conflict.Nodes, " ") != tc.conflict {
					t.Errorf("node %v, error %v, want a conflict of %s", got, err, tc.conflict)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (tc.want == "") || got != nil && got.Name != tc.want {
				t.Errorf("node %v, want %q", got, tc.want)
			}
		})
	}
}
