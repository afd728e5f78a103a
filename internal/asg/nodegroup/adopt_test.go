package nodegroup_test

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

// The user who adopts may have fewer permissions than the controller. What was
// not read is not declared, and must not be deleted or duplicated because of
// that.
func TestAdoptWithoutReadPermission(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		management v1beta1.Management
		denied     string
	}{
		"the warm pool":               {v1beta1.ManageAll, "DescribeWarmPool"},
		"the hooks":                   {v1beta1.ManageHooks, "DescribeLifecycleHooks"},
		"the hooks, to manage it all": {v1beta1.ManageAll, "DescribeLifecycleHooks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.mustSettle(t, a.declare("nodes", declarePool, func(s *v1beta1.NodeGroupSpec) {
				s.Hooks.Launch = &v1beta1.LifecycleHook{Name: "kops-warmpool"}
			}))
			a.Gate.Deny("autoscaling", tc.denied)
			adopted, notes := nodegroup.Adopt(a.observe(t, "nodes"), tc.management)
			a.Gate.Lift("autoscaling", tc.denied)

			if note := strings.Join(notes, "\n"); !strings.Contains(note, "management is Observe") || !strings.Contains(note, "autoscaling:"+tc.denied) {
				t.Errorf("notes: %s", note)
			}
			if did := a.mustSettle(t, adopted); len(did) != 0 {
				t.Errorf("adopted, and then did %v", did)
			}
		})
	}
}
