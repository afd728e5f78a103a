package doctor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestCheckPolicies(t *testing.T) {
	named := func(name string, priority int32, pools ...string) v1beta1.InterruptionPolicy {
		return v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.InterruptionPolicySpec{
			Priority: priority, Nodes: v1beta1.NodeSelector{NodePools: pools}, Rules: []v1beta1.Rule{{Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain}},
		}}
	}
	node := func(pool string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pool + "-1", Labels: map[string]string{"karpenter.sh/nodepool": pool}}}
	}
	invalid := named("invalid", 9)
	invalid.Spec.Rules[0].Kinds = nil
	for name, tc := range map[string]struct {
		policies []v1beta1.InterruptionPolicy
		want     []string
	}{
		"none":                         {nil, nil},
		"one for each pool":            {[]v1beta1.InterruptionPolicy{named("a", 0, "web"), named("b", 0, "batch")}, nil},
		"two with other priorities":    {[]v1beta1.InterruptionPolicy{named("a", 0, "web"), named("b", 1)}, nil},
		"two with one priority":        {[]v1beta1.InterruptionPolicy{named("b", 3, "web"), named("a", 3)}, []string{"policies-tied interruptionpolicies a and b"}},
		"a tie below the one that has": {[]v1beta1.InterruptionPolicy{named("a", 0), named("b", 0), named("c", 1)}, nil},
		"not valid":                    {[]v1beta1.InterruptionPolicy{invalid}, []string{"policy-invalid interruptionpolicy invalid"}},
	} {
		var got []string
		for _, f := range doctor.CheckPolicies(tc.policies, []corev1.Node{node("web"), node("batch")}) {
			got = append(got, f.ID+" "+f.Object)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
