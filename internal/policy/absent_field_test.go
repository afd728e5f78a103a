package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// A rule that states only kinds and the default's own action decides as the built-in default does.
func TestAbsentFieldsOfARuleMeanTheDefaultOfTheKind(t *testing.T) {
	notices := map[string]v1beta1.Notice{
		"a stop":        scheduled(notice.ActionStop, noon.Add(30*time.Minute)),
		"a later stop":  scheduled(notice.ActionStop, noon.Add(72*time.Hour)),
		"a retirement":  scheduled(notice.ActionTerminate, noon.Add(72*time.Hour)),
		"a reboot":      scheduled(notice.ActionReboot, noon.Add(72*time.Hour)),
		"a maintenance": scheduled(notice.ActionMaintain, noon.Add(72*time.Hour)),
	}
	for _, kind := range notice.Kinds() {
		notices[kind] = build("n", kind)
		notices[kind+" with a hard deadline"] = build("n", kind, due(noon.Add(2*time.Minute), v1beta1.DeadlineHard))
		notices[kind+" with a soft deadline"] = build("n", kind, due(noon.Add(72*time.Hour), v1beta1.DeadlineSoft))
	}
	for _, s := range []string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated} {
		notices["instance is "+s] = state(s)
	}
	for name, n := range notices {
		for _, control := range []bool{false, true} {
			node := ofPool("web")
			if control {
				node.Labels["node-role.kubernetes.io/control-plane"] = ""
			}
			f := policy.Facts{Now: noon, Notices: []v1beta1.Notice{n}, Node: node, Extended: true}
			want, _ := policy.Decide(f)
			f.Policies = []v1beta1.InterruptionPolicy{named("p", 0, on(want.Action, "*"))}
			got, _ := policy.Decide(f)
			if got.Policy != "p" {
				t.Fatalf("%s: the rule does not apply: %s", name, got.Message)
			}
			says := cmpopts.IgnoreFields(v1beta1.Decision{}, "Policy", "Rule", "EffectivePolicy", "Message")
			if diff := cmp.Diff(want, got, says, cmpopts.IgnoreFields(policy.Decision{}, "Considered")); diff != "" {
				t.Errorf("%s, control plane %v (-default +rule)\n%s", name, control, diff)
			}
		}
	}
}
