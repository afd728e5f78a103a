package policy_test

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func TestControlPlaneIsNotTerminated(t *testing.T) {
	rule := v1beta1.Rule{Kinds: []string{"*"}, Action: v1beta1.ActionTerminate, Replacement: v1beta1.ReplacementBefore}
	for name, tc := range map[string]struct {
		labels map[string]string
		spared bool
	}{
		"a worker":                    {map[string]string{"node-role.kubernetes.io/worker": ""}, false},
		"the control plane":           {map[string]string{"node-role.kubernetes.io/control-plane": ""}, true},
		"the control plane of a pool": {map[string]string{"node-role.kubernetes.io/control-plane": "", "karpenter.sh/nodepool": "p"}, true},
		"kubeadm's older label":       {map[string]string{"node-role.kubernetes.io/master": ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := policy.Decide(policy.Facts{
				Now: noon, Notices: []v1beta1.Notice{build("s", notice.KindInstanceStatus)}, Node: node(tc.labels),
				Policies: []v1beta1.InterruptionPolicy{named("p", 1, rule)},
			})
			want, replacement := v1beta1.ActionTerminate, v1beta1.ReplacementBefore
			if tc.spared {
				want, replacement = v1beta1.ActionDrain, v1beta1.ReplacementNone
			}
			if !ok || d.Action != want || d.Replacement != replacement || strings.Contains(d.Message, "control plane") != tc.spared {
				t.Errorf("%s with replacement %s: %s; want %s with %s", d.Action, d.Replacement, d.Message, want, replacement)
			}
		})
	}
}
