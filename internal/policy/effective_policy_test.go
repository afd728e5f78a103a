package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// governing is a policy with all settings outside of its rules.
func governing(name string, priority int32, rules ...v1beta1.Rule) v1beta1.InterruptionPolicy {
	p := named(name, priority, rules...)
	p.Spec.Workloads = []v1beta1.Workload{{Namespaces: []string{"db"}, Order: v1beta1.OrderLast}}
	p.Spec.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
	p.Spec.Terminations = &v1beta1.Terminations{MaxConcurrent: intstr.FromString("5%")}
	p.Spec.Hooks = []v1beta1.Hook{{Name: "page", When: v1beta1.HookAfterDrain, Webhook: &v1beta1.Webhook{URL: "https://hooks.example.com/" + name}}}
	p.Spec.Notifications = []v1beta1.Notification{{Name: "chat", Webhook: v1beta1.Webhook{URL: "https://chat.example.com/" + name}}}
	return p
}

// The governing policy's budget and hooks apply even if a default rule is used.
func TestEffectivePolicyAppliesWithoutMatchingRule(t *testing.T) {
	none := v1beta1.Terminations{MaxConcurrent: intstr.FromString("20%")}
	db := governing("db", 2, on(v1beta1.ActionIgnore, notice.KindScheduledChange))
	for _, c := range []struct {
		name            string
		policies        []v1beta1.InterruptionPolicy
		notice          v1beta1.Notice
		rules           string
		effectivePolicy *v1beta1.InterruptionPolicy
	}{
		{"its rule rules", []v1beta1.InterruptionPolicy{db, governing("other", 1)}, scheduled(notice.ActionStop, noon), "db", &db},
		{"a default rules", []v1beta1.InterruptionPolicy{governing("other", 1), db}, spot(), "", &db},
		{"no policy selects the node", []v1beta1.InterruptionPolicy{selecting(db, v1beta1.NodeSelector{NodeGroups: []string{"db"}})}, spot(), "", nil},
		{"it is not valid", []v1beta1.InterruptionPolicy{governing("db", 2, on("Explode", "*"))}, spot(), "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: node(nil), Policies: c.policies})
			got := v1beta1.InterruptionPolicySpec{Workloads: d.Workloads, Budget: d.Budget, Terminations: &d.Terminations, Hooks: d.Hooks, Notifications: d.Notifications}
			want, effectivePolicy := v1beta1.InterruptionPolicySpec{Terminations: &none}, ""
			if c.effectivePolicy != nil {
				want, effectivePolicy = c.effectivePolicy.Spec, c.effectivePolicy.Name
				want.Nodes, want.Priority, want.Rules = got.Nodes, got.Priority, got.Rules
			}
			if diff := cmp.Diff(want, got); diff != "" || d.EffectivePolicy != effectivePolicy || d.Policy != c.rules {
				t.Errorf("effectivePolicy %q, want %q; policy %q, want %q (-want +got)\n%s", d.EffectivePolicy, effectivePolicy, d.Policy, c.rules, diff)
			}
		})
	}
}

func TestPodStrategy(t *testing.T) {
	moved := func(action v1beta1.Action, strategy v1beta1.Strategy, replacement v1beta1.Replacement) v1beta1.InterruptionPolicy {
		rule := on(action, "*")
		rule.Strategy, rule.Replacement = strategy, replacement
		return named("p", 0, rule)
	}
	none := named("p", 0, on(v1beta1.ActionIgnore, notice.KindHealthIssue))
	type how struct {
		v1beta1.Strategy
		v1beta1.Replacement
	}
	surge, before := how{v1beta1.StrategySurge, v1beta1.ReplacementNone}, how{v1beta1.StrategySurge, v1beta1.ReplacementBefore}
	evict := how{v1beta1.StrategyEvict, v1beta1.ReplacementNone}
	for _, c := range []struct {
		name   string
		policy v1beta1.InterruptionPolicy
		notice v1beta1.Notice
		want   how
	}{
		{"a rule that says nothing", moved(v1beta1.ActionDrain, "", ""), spot(), before},
		{"a rule that evicts", moved(v1beta1.ActionDrain, v1beta1.StrategyEvict, ""), spot(), how{v1beta1.StrategyEvict, v1beta1.ReplacementBefore}},
		{"a rule that starts no replacement", moved(v1beta1.ActionDrain, "", v1beta1.ReplacementNone), spot(), surge},
		{"a rule that says nothing about a hint", moved(v1beta1.ActionDrain, "", ""), rebalance(), surge},
		{"a rule that says nothing about a reboot", moved(v1beta1.ActionDrain, "", ""), scheduled(notice.ActionReboot, noon), surge},
		{"a request, with a rule for another action", moved(v1beta1.ActionNotify, "", ""), build("n", notice.KindRequested), before},
		{"a rule that surges from an instance that is going", moved(v1beta1.ActionDrain, v1beta1.StrategySurge, ""), state(notice.StateStopping), surge},
		{"a rule that says nothing of an instance that is going", moved(v1beta1.ActionDrain, "", ""), state(notice.StateShuttingDown), evict},
		{"a rule that says something", moved(v1beta1.ActionTerminate, v1beta1.StrategySurge, v1beta1.ReplacementBefore), spot(), how{v1beta1.StrategySurge, v1beta1.ReplacementBefore}},
		{"an action that moves nothing", moved(v1beta1.ActionCordon, "", ""), spot(), how{}},
		{"spot by default", none, spot(), before},
		{"a capacity reservation by default", none, build("n", notice.KindCapacityReservationInterruption), before},
		{"an Auto Scaling termination by default", none, build("n", notice.KindAutoScalingTermination), before},
		{"a stop by default", none, scheduled(notice.ActionStop, noon), before},
		{"a retirement by default", none, scheduled(notice.ActionTerminate, noon), before},
		{"a reboot by default", none, scheduled(notice.ActionReboot, noon), surge},
		{"a Capacity Block by default", none, build("n", notice.KindCapacityBlockExpiration), surge},
		{"an instance that is going by default", none, state(notice.StateStopping), evict},
		{"a hint by default", none, rebalance(), how{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{c.policy}})
			if got := (how{d.Strategy, d.Replacement}); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFailingInstanceIsOnlyReportedByDefault(t *testing.T) {
	for _, c := range []struct {
		name    string
		node    *corev1.Node
		want    v1beta1.Action
		message string
	}{
		{"of a NodePool", ofPool("web"), v1beta1.ActionNotify, "Notify: built-in default for InstanceStatus, since no policy selects the node; the instance fails its status checks; a policy with action Terminate lets its pool replace it"},
		{"of a node group", node(map[string]string{"eks.amazonaws.com/nodegroup": "web"}), v1beta1.ActionNotify, "Notify: built-in default for InstanceStatus, since no policy selects the node; the instance fails its status checks; a policy with action Terminate lets its pool replace it"},
		{"of none", node(nil), v1beta1.ActionNotify, "Notify: built-in default for InstanceStatus, since no policy selects the node; the instance fails its status checks, and its node belongs to no pool, so nothing would replace it"},
		{"no node", nil, v1beta1.ActionNotify, "Notify: built-in default for InstanceStatus, since no policy selects the node; the instance fails its status checks, and its node belongs to no pool, so nothing would replace it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{build("n", notice.KindInstanceStatus)}, Node: c.node})
			if d.Action != c.want || d.Message != c.message || d.Terminations.MaxConcurrent.String() != "20%" {
				t.Errorf("%s, %s at a time: %s\nwant %s: %s", d.Action, &d.Terminations.MaxConcurrent, d.Message, c.want, c.message)
			}
		})
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		limit intstr.IntOrString
		of    int
		want  int
	}{
		{intstr.FromInt32(3), 100, 3},
		{intstr.FromString("20%"), 10, 2},
		{intstr.FromString("20%"), 11, 3},
		{intstr.FromString("1%"), 0, 1},
		{intstr.FromString("nonsense"), 10, 1},
	} {
		if got := policy.Share(c.limit, c.of); got != c.want {
			t.Errorf("%s of %d is %d, want %d", &c.limit, c.of, got, c.want)
		}
	}
}

func TestSelects(t *testing.T) {
	p := selecting(named("p", 0), v1beta1.NodeSelector{NodePools: []string{"db"}})
	if !policy.Selects(&p, ofPool("db")) || policy.Selects(&p, ofPool("web")) {
		t.Error("it does not go by the NodePool")
	}
	p.Spec.Rules[0].NotBefore = after(time.Second)
	if policy.Selects(&p, ofPool("db")) {
		t.Error("a policy that is not valid selects")
	}
}

// TestOf: of valid policies that select the node, the highest priority counts, and then the name.
func TestOf(t *testing.T) {
	made := func(name, pool string, priority int32) v1beta1.InterruptionPolicy {
		return selecting(named(name, priority), v1beta1.NodeSelector{NodePools: []string{pool}})
	}
	policies := []v1beta1.InterruptionPolicy{made("b", "db", 1), made("a", "db", 1), made("low", "db", 0), made("web", "web", 9)}
	if got := policy.Of(policies, ofPool("db")); got == nil || got.Name != "a" {
		t.Errorf("got %+v, want a", got)
	}
	policies[1].Spec.Rules = nil
	if got := policy.Of(policies, ofPool("db")); got == nil || got.Name != "b" {
		t.Errorf("got %+v, want b: a is invalid", got)
	}
	if got := policy.Of(policies, ofPool("cache")); got != nil {
		t.Errorf("got %s for a pool without a policy", got.Name)
	}
}
