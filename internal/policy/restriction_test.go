package policy

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func TestRestrictionThatKarpenterWouldDefeat(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelNodePool: "databases"}}}
	policy := func(name string, priority int32, kind string, change func(*v1beta1.InterruptionPolicySpec, *v1beta1.Rule)) v1beta1.InterruptionPolicy {
		spec := v1beta1.InterruptionPolicySpec{Priority: priority, Rules: []v1beta1.Rule{{Kinds: []string{kind}, Action: v1beta1.ActionDrain}}}
		if change != nil {
			change(&spec, &spec.Rules[0])
		}
		return v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	rule := func(kind string, change func(*v1beta1.Rule)) []v1beta1.InterruptionPolicy {
		return []v1beta1.InterruptionPolicy{policy("p", 0, kind, func(_ *v1beta1.InterruptionPolicySpec, r *v1beta1.Rule) { change(r) })}
	}
	spec := func(change func(*v1beta1.InterruptionPolicySpec)) []v1beta1.InterruptionPolicy {
		return []v1beta1.InterruptionPolicy{policy("p", 0, "SpotInterruption", func(s *v1beta1.InterruptionPolicySpec, _ *v1beta1.Rule) { change(s) })}
	}
	action := func(a v1beta1.Action) func(*v1beta1.Rule) { return func(r *v1beta1.Rule) { r.Action = a } }
	hook := func(when v1beta1.HookTime) func(*v1beta1.InterruptionPolicySpec) {
		return func(s *v1beta1.InterruptionPolicySpec) {
			s.Hooks = []v1beta1.Hook{{Name: "flush", When: when, Webhook: &v1beta1.Webhook{URL: "https://example.com/"}}}
		}
	}
	for name, test := range map[string]struct {
		policies []v1beta1.InterruptionPolicy
		want     string
	}{
		"no policy":            {nil, ""},
		"a drain at once":      {rule("SpotInterruption", action(v1beta1.ActionDrain)), ""},
		"Terminate":            {rule("InstanceStatus", action(v1beta1.ActionTerminate)), ""},
		"Ignore":               {rule("ScheduledChange", action(v1beta1.ActionIgnore)), "rule 1 has action: Ignore"},
		"Ignore of all kinds":  {rule("*", action(v1beta1.ActionIgnore)), "rule 1 has action: Ignore"},
		"Notify":               {rule("InstanceStatus", action(v1beta1.ActionNotify)), "rule 1 has action: Notify"},
		"Cordon":               {rule("ScheduledChange", action(v1beta1.ActionCordon)), "rule 1 has action: Cordon"},
		"rebalance is ignored": {rule("RebalanceRecommendation", action(v1beta1.ActionIgnore)), ""},
		"approval":             {rule("ScheduledChange", func(r *v1beta1.Rule) { r.Approval = v1beta1.ApprovalRequired }), "rule 1 has approval: Required"},
		"notBefore":            {rule("ScheduledChange", func(r *v1beta1.Rule) { r.NotBefore = &metav1.Duration{Duration: time.Hour} }), "rule 1 has notBefore"},
		"a window": {rule("ScheduledChange", func(r *v1beta1.Rule) {
			r.Window = &v1beta1.Window{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}
		}), "rule 1 has a window"},
		"a budget": {spec(func(s *v1beta1.InterruptionPolicySpec) {
			s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
		}), "it has a budget"},
		"a hook before": {spec(hook(v1beta1.HookBeforeDrain)), "it has a hook before the drain"},
		"a hook after":  {spec(hook(v1beta1.HookAfterDrain)), ""},
		"not valid":     {rule("ScheduledChange", func(r *v1beta1.Rule) { r.Action = "Wait" }), "it is not valid, so drains wait for approval"},
		"another pool": {spec(func(s *v1beta1.InterruptionPolicySpec) {
			s.Nodes.NodePools, s.Budget = []string{"web"}, &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
		}), ""},
		"outranked": {[]v1beta1.InterruptionPolicy{
			policy("a", 0, "ScheduledChange", func(_ *v1beta1.InterruptionPolicySpec, r *v1beta1.Rule) { r.Action = v1beta1.ActionIgnore }),
			policy("b", 10, "ScheduledChange", nil),
		}, ""},
	} {
		governs, what := Restriction(test.policies, node)
		if what != test.want || (governs != "") != (what != "") {
			t.Errorf("%s: policy %q, %q, want %q", name, governs, what, test.want)
		}
	}
}
