package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// For any policies and notices there must be a decision, it must be deterministic, and it must
// have the properties of every decision.
func FuzzDecide(f *testing.F) {
	f.Add("0 2 * * *", "Europe/Berlin", int64(2*time.Hour), notice.KindRebalanceRecommendation, "", "Drain", int64(3600), true, "tier", "In", "db", "*-stop", int64(24*time.Hour), "Required", "Proceed")
	f.Add("30 2 29 2 *", "America/New_York", int64(time.Minute), notice.KindSpotInterruption, "", "Cordon", int64(120), false, "tier", "Exists", "", "", int64(0), "None", "")
	f.Add("TZ=0", "Local", int64(-1), notice.KindInstanceStateChange, "stopped", "", int64(-5), false, "", "", "", "**", int64(-1), "Required", "Wait")
	f.Add("TZ=UTC\t0 2 * *", "../etc", int64(1)<<62, "*", "stopping", "Ignore", int64(1)<<40, true, "a b", "NotIn", "c d", "*a*", int64(1)<<62, "Maybe", "Maybe")
	f.Add("*/7 1-3 1,15 JAN-DEC ?", "UTC", int64(168*time.Hour), "SolarFlare", "running", "Notify", int64(0), true, "x", "DoesNotExist", "y", "SOLAR*", int64(time.Minute), "", "")
	f.Add("0 2 * * *", "", int64(time.Hour), notice.KindScheduledChange, "", "Terminate", int64(7200), true, "tier", "Exists", "", "", int64(time.Hour), "Required", "Wait")
	f.Fuzz(func(t *testing.T, schedule, zone string, duration int64, kind, state, action string, dueIn int64, soft bool, key, operator, value, code string, notBefore int64, approval, unanswered string) {
		n := build("n", kind, func(n *v1beta1.Notice) {
			n.InstanceState, n.InstanceAction, n.EventTypeCode = state, notice.ActionStop, value
		})
		if dueIn != 0 {
			typ := v1beta1.DeadlineHard
			if soft {
				typ = v1beta1.DeadlineSoft
			}
			due(noon.Add(time.Duration(dueIn%1e9)*time.Second), typ)(&n)
		}
		rule := v1beta1.Rule{
			Kinds: []string{"*"}, Action: v1beta1.Action(action), Approval: v1beta1.Approval(approval), IfUnanswered: v1beta1.Unanswered(unanswered),
			Window: &v1beta1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: time.Duration(duration)}, TimeZone: zone},
		}
		if notBefore != 0 {
			rule.NotBefore = after(time.Duration(notBefore))
		}
		coded := rule
		coded.EventTypeCodes = []string{code}
		p := selecting(named("p", 0, coded, rule), v1beta1.NodeSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: strings.Fields(value)}},
			MatchLabels:      map[string]string{key: value},
		})
		everywhere := named("q", -1, rule, v1beta1.Rule{})
		facts := policy.Facts{
			Now: noon, Notices: []v1beta1.Notice{n, rebalance()}, Node: node(map[string]string{key: value}),
			Policies: []v1beta1.InterruptionPolicy{p, everywhere, {}}, Approval: say(code, noon),
		}
		d, ok := policy.Decide(facts)
		again, _ := policy.Decide(facts)
		if diff := cmp.Diff(d, again); !ok || diff != "" {
			t.Fatalf("ok %t (-first +then)\n%s", ok, diff)
		}
		keepsPromises(t, facts, d)
	})
}

func keepsPromises(t *testing.T, f policy.Facts, d policy.Decision) {
	t.Helper()
	if !d.NotBefore.IsZero() {
		if !d.NotBefore.After(f.Now) {
			t.Errorf("not before %s, which is not later than %s", d.NotBefore, f.Now)
		}
		if d.Deadline != nil && (d.Deadline.Type == v1beta1.DeadlineHard || !d.NotBefore.Before(d.Deadline.Time.Time)) {
			t.Errorf("not before %s, with a deadline %s", d.NotBefore, d.Deadline.Time)
		}
	}
	switch {
	case d.AwaitsApproval && !d.ProceedsAt.IsZero() && !d.ProceedsAt.After(f.Now):
		t.Errorf("it waits for approval, and would have gone ahead at %s", d.ProceedsAt)
	case !d.AwaitsApproval && !d.ProceedsAt.IsZero():
		t.Errorf("it waits for no approval, but has the proceed time %s", d.ProceedsAt)
	case d.AwaitsApproval && !strings.Contains(d.Message, "`lifeboat approve "):
		t.Errorf("it does not say how to approve: %s", d.Message)
	case d.Policy != "" && d.Policy != d.EffectivePolicy:
		t.Errorf("policy %q rules, and %q governs", d.Policy, d.EffectivePolicy)
	case (d.Strategy != "") != (d.Action == v1beta1.ActionDrain || d.Action == v1beta1.ActionTerminate):
		t.Errorf("%s with strategy %q", d.Action, d.Strategy)
	case !strings.HasPrefix(d.Message, string(d.Action)+": "):
		t.Errorf("%s: %s", d.Action, d.Message)
	}
	rules := 0
	for _, c := range d.Considered {
		if c.Reason == "" {
			t.Errorf("no reason for %s %s", c.Policy, c.Rule)
		}
		if c.Rules {
			rules++
			if c.Policy != d.Policy || c.Rule != d.Rule {
				t.Errorf("considered says %s %s, decision %s %s", c.Policy, c.Rule, d.Policy, d.Rule)
			}
		}
	}
	if rules != 1 || d.Message == "" || d.Action == "" || d.DoNotDisrupt == "" {
		t.Errorf("%d rules rule: %+v", rules, d)
	}
}

// A policy that Validate accepts must apply, and Validate must never panic.
func FuzzValidate(f *testing.F) {
	f.Add("0 2 * * *", "Europe/Berlin", int64(time.Hour))
	f.Add("CRON_TZ=\t* * * *", "", int64(0))
	f.Add("0-59/0 * * * *", "UTC", int64(time.Hour))
	f.Add("99999999999999999999 * * * *", "Asia/Kolkata", int64(time.Hour))
	f.Fuzz(func(t *testing.T, schedule, zone string, duration int64) {
		rule := on(v1beta1.ActionCordon, "*")
		rule.Window = &v1beta1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: time.Duration(duration)}, TimeZone: zone}
		p := named("p", 0, rule)
		p.Spec.Workloads = []v1beta1.Workload{{Namespaces: []string{zone}, Order: v1beta1.OrderLast}}
		p.Spec.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromString(schedule)}
		p.Spec.Hooks = []v1beta1.Hook{{Name: zone, When: v1beta1.HookAfterDrain, Retries: int32(duration), Job: &v1beta1.HookJob{Template: runtime.RawExtension{Raw: []byte(schedule)}}}}
		p.Spec.Notifications = []v1beta1.Notification{{Name: zone, Reasons: []string{schedule}, Webhook: v1beta1.Webhook{URL: zone, Body: schedule, Headers: map[string]string{zone: schedule}}}}
		policy.Validate(p.Spec) // must not panic
		p.Spec.Workloads, p.Spec.Budget, p.Spec.Hooks, p.Spec.Notifications = nil, nil, nil, nil
		problems := policy.Validate(p.Spec)
		d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{rebalance()}, Policies: []v1beta1.InterruptionPolicy{p}})
		if valid := len(problems) == 0; valid != (d.Policy == "p") {
			t.Errorf("problems %q, but policy %q rules", problems, d.Policy)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	facts := policy.Facts{Now: noon, Notices: []v1beta1.Notice{rebalance(), spot()}, Node: ofPool("web")}
	for i := range int32(50) {
		rule := on(v1beta1.ActionDrain, "*")
		rule.Window = window("0 2 * * *", time.Hour, "Europe/Berlin")
		facts.Policies = append(facts.Policies, selecting(named(fmt.Sprintf("p-%02d", i), i, rule), v1beta1.NodeSelector{NodePools: []string{fmt.Sprintf("pool-%d", i)}}))
	}
	for _, c := range []struct {
		name string
		last v1beta1.NodeSelector
	}{
		{"50PoliciesNoneSelects", v1beta1.NodeSelector{NodePools: []string{"other"}}},
		{"50PoliciesTheLastRules", v1beta1.NodeSelector{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			facts.Policies[0].Spec.Nodes = c.last
			b.ReportAllocs()
			for b.Loop() {
				policy.Decide(facts)
			}
		})
	}
}

// BenchmarkSelects is the cost of a budget per node of the cluster.
func BenchmarkSelects(b *testing.B) {
	p := governing("p", 0)
	p.Spec.Hooks[0].Webhook.Body = `{"text": {{json .Message}}}`
	n := ofPool("web")
	b.ReportAllocs()
	for b.Loop() {
		policy.Selects(&p, n)
	}
}
