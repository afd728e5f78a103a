package cli

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAgentFindings(t *testing.T) {
	node := func(name, provider string, status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: provider},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
		}
	}
	on := func(n string, status corev1.ConditionStatus) corev1.Pod {
		return corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: n},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
		}
	}
	const own = "agents"
	const ec2 = "aws:///z/i-0a1b2c3d4e5f60718"
	a, b := node("a", ec2, corev1.ConditionTrue), node("b", ec2, corev1.ConditionTrue)
	var many []corev1.Node
	for i := range 7 {
		many = append(many, node(fmt.Sprint("n", i), ec2, corev1.ConditionTrue))
	}
	for name, tc := range map[string]struct {
		namespace string // of the DaemonSet
		nodes     []corev1.Node
		pods      []corev1.Pod
		want      []string
	}{
		"all is well":           {own, []corev1.Node{a}, []corev1.Pod{on("a", corev1.ConditionTrue)}, nil},
		"there is no DaemonSet": {"", []corev1.Node{a, b}, nil, []string{"agents-missing daemonset lifeboat-system/lifeboat-agent"}},
		"it has no pods":        {own, []corev1.Node{a, b}, nil, []string{"agents-missing daemonset agents/lifeboat-agent"}},
		"one node has none":     {own, []corev1.Node{a, b}, []corev1.Pod{on("a", corev1.ConditionTrue)}, []string{"nodes-without-agent nodes b"}},
		"one cannot read":       {own, []corev1.Node{a, b}, []corev1.Pod{on("a", corev1.ConditionTrue), on("b", corev1.ConditionFalse)}, []string{"agents-not-ready nodes b"}},
		"many are named in few": {own, many, []corev1.Pod{on("n0", corev1.ConditionTrue)}, []string{"nodes-without-agent nodes n1, n2, n3, n4, n5 and 1 more"}},
		"what is not of EC2, or not Ready, does not count":  {own, []corev1.Node{node("c", "kind://c", corev1.ConditionTrue), node("d", ec2, corev1.ConditionFalse)}, nil, nil},
		"an agent that is being replaced by one that reads": {own, []corev1.Node{a}, []corev1.Pod{on("a", corev1.ConditionFalse), on("a", corev1.ConditionTrue)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range agentFindings(tc.namespace, tc.nodes, tc.pods) {
				got = append(got, f.ID+" "+f.Object)
				if f.Problem == "" || f.Fix == "" {
					t.Errorf("%s explains nothing", f.ID)
				}
				if strings.Contains(f.Fix, "-n ") != (tc.namespace != "") || strings.Contains(f.Fix, "-n ") && !strings.Contains(f.Fix, "-n "+tc.namespace) {
					t.Errorf("%s has the fix %q, want one for the namespace %q", f.ID, f.Fix, tc.namespace)
				}
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
