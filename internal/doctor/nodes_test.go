package doctor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

func TestCheckNodes(t *testing.T) {
	node := func(name, instance string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/" + instance},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	onEC2 := func(name string) corev1.Node { return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	const one, two, yes, no = "i-0000000000000000a", "i-0000000000000000b", corev1.ConditionTrue, corev1.ConditionFalse
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  []string
	}{
		"one node for each instance":        {[]corev1.Node{node("a", one, yes), node("b", two, yes)}, nil},
		"two Ready nodes":                   {[]corev1.Node{node("b", one, yes), node("a", one, yes), node("c", two, yes)}, []string{"node-conflict nodes a and b"}},
		"the earlier node of a renamed one": {[]corev1.Node{node("a", one, yes), node("b", one, no)}, nil},
		"instances without a provider id": {[]corev1.Node{onEC2("ip-10-0-1-5.ec2.internal"), onEC2("ip-10-0-1-4.ec2.internal"), node("c", two, yes)},
			[]string{"node-without-provider-id nodes ip-10-0-1-4.ec2.internal and ip-10-0-1-5.ec2.internal"}},
		"machines without a provider id":       {[]corev1.Node{onEC2("rack7")}, nil},
		"several nodes without an instance id": {[]corev1.Node{node("a", "", yes), node("b", "", yes)}, nil},
	} {
		var got []string
		for _, f := range doctor.CheckNodes(tc.nodes) {
			got = append(got, f.ID+" "+f.Object)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
