package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// wrong is an invalid policy, and the expected problems.
type wrong struct {
	name string
	spec v1beta1.InterruptionPolicySpec
	want []string
}

// drains is a valid policy.
func drains(change func(*v1beta1.InterruptionPolicySpec)) v1beta1.InterruptionPolicySpec {
	spec := named("p", 0, on(v1beta1.ActionDrain, "*")).Spec
	change(&spec)
	return spec
}

func ruled(change func(*v1beta1.Rule)) v1beta1.InterruptionPolicySpec {
	return drains(func(s *v1beta1.InterruptionPolicySpec) { change(&s.Rules[0]) })
}

func works(w v1beta1.Workload) v1beta1.InterruptionPolicySpec {
	return drains(func(s *v1beta1.InterruptionPolicySpec) { s.Workloads = []v1beta1.Workload{w} })
}

func hooked(hooks ...v1beta1.Hook) v1beta1.InterruptionPolicySpec {
	return drains(func(s *v1beta1.InterruptionPolicySpec) { s.Hooks = hooks })
}

func notifies(notifications ...v1beta1.Notification) v1beta1.InterruptionPolicySpec {
	return drains(func(s *v1beta1.InterruptionPolicySpec) { s.Notifications = notifications })
}

func limited(limit intstr.IntOrString) v1beta1.InterruptionPolicySpec {
	return drains(func(s *v1beta1.InterruptionPolicySpec) { s.Budget = &v1beta1.Budget{MaxConcurrent: limit} })
}

var (
	page    = v1beta1.Webhook{URL: "https://hooks.example.com/page"}
	pages   = v1beta1.Hook{Name: "page", When: v1beta1.HookAfterDrain, Webhook: &page}
	rebuild = v1beta1.HookJob{Template: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}}`)}}
)

// changed is a copy with a change.
func changed[T any](of T, change func(*T)) T {
	change(&of)
	return of
}

func wrongRules() []wrong {
	rule := func(name string, change func(*v1beta1.Rule), says string) wrong {
		w := wrong{name: name, spec: ruled(change)}
		if says != "" {
			w.want = []string{"rule 1: " + says}
		}
		return w
	}
	ignored := func(change func(*v1beta1.Rule)) func(*v1beta1.Rule) {
		return func(r *v1beta1.Rule) { r.Action = v1beta1.ActionIgnore; change(r) }
	}
	deregistering := func(name string, wait time.Duration, says ...string) wrong {
		w := wrong{name: name, spec: ruled(func(*v1beta1.Rule) {}), want: says}
		w.spec.WaitForDeregistration = after(wait)
		return w
	}
	const says = "waitForDeregistration must be between 1s and 1h, such as 1m"
	return []wrong{
		rule("everything at once", func(r *v1beta1.Rule) {
			*r = v1beta1.Rule{
				Kinds: []string{"SpotInterruption"}, EventTypeCodes: []string{"*"}, Action: v1beta1.ActionTerminate,
				Approval: v1beta1.ApprovalRequired, IfUnanswered: v1beta1.UnansweredProceed, NotBefore: after(8760 * time.Hour),
				Strategy: v1beta1.StrategySurge, Replacement: v1beta1.ReplacementBefore,
			}
		}, ""),
		rule("an empty code", func(r *v1beta1.Rule) { r.EventTypeCodes = []string{"*", ""} }, `eventTypeCodes has an empty code: write one such as "*_STOP_SCHEDULED", or remove the entry`),
		rule("an unknown approval", func(r *v1beta1.Rule) { r.Approval = "Maybe" }, `unknown approval "Maybe": write Required or None`),
		rule("an unknown ifUnanswered", func(r *v1beta1.Rule) { r.Approval, r.IfUnanswered = v1beta1.ApprovalRequired, "Ask" }, `unknown ifUnanswered "Ask": write Wait or Proceed`),
		rule("ifUnanswered without approval", func(r *v1beta1.Rule) { r.IfUnanswered = v1beta1.UnansweredWait }, `ifUnanswered says what happens without an approval; write approval: Required as well, or remove it`),
		rule("a notBefore that is too short", func(r *v1beta1.Rule) { r.NotBefore = after(time.Second) }, `notBefore must be between 1m and 8760h, such as 24h`),
		rule("a notBefore that is too long", func(r *v1beta1.Rule) { r.NotBefore = after(8761 * time.Hour) }, `notBefore must be between 1m and 8760h, such as 24h`),
		rule("an unknown strategy", func(r *v1beta1.Rule) { r.Strategy = v1beta1.StrategyNever }, `unknown strategy "Never": write Evict or Surge; Never is for workloads`),
		rule("an unknown replacement", func(r *v1beta1.Rule) { r.Replacement = "After" }, `unknown replacement "After": write Before or None`),
		rule("approval None is valid everywhere", ignored(func(r *v1beta1.Rule) { r.Approval = v1beta1.ApprovalNone }), ""),
		rule("approval of nothing", ignored(func(r *v1beta1.Rule) { r.Approval = v1beta1.ApprovalRequired }), `approval only makes sense with action Cordon, Drain or Terminate; remove it, or change the action`),
		rule("a notBefore of nothing", ignored(func(r *v1beta1.Rule) { r.NotBefore = after(time.Hour) }), `notBefore only makes sense with action Cordon, Drain or Terminate; remove it, or change the action`),
		rule("a strategy of nothing", ignored(func(r *v1beta1.Rule) { r.Strategy = v1beta1.StrategyEvict }), `strategy only makes sense with action Drain or Terminate; remove it, or change the action`),
		rule("a drainTimeout that is too short", func(r *v1beta1.Rule) { r.Kinds, r.DrainTimeout = []string{"*"}, after(time.Second) }, `drainTimeout must be between 1m and 48h, such as 30m`),
		rule("a drainTimeout beside a deadline", func(r *v1beta1.Rule) { r.Kinds, r.DrainTimeout = []string{"SpotInterruption"}, after(time.Hour) }, `drainTimeout is for drains that no deadline ends: of kind AutoScalingTermination, or with action Terminate; remove it, or add the kind`),
		rule("a drainTimeout for nothing", ignored(func(r *v1beta1.Rule) { r.DrainTimeout = after(time.Hour) }), `drainTimeout only makes sense with action Drain or Terminate; remove it, or change the action`),
		rule("a replacement for nothing", ignored(func(r *v1beta1.Rule) { r.Replacement = v1beta1.ReplacementNone }), `replacement only makes sense with action Drain or Terminate; remove it, or change the action`),
		deregistering("the shortest wait for load balancers", time.Second),
		deregistering("a wait for load balancers that is too short", time.Second-1, says),
		deregistering("a wait for load balancers that is too long", time.Hour+1, says),
	}
}

func wrongWorkloads() []wrong {
	work := func(name string, w v1beta1.Workload, says ...string) wrong {
		for i := range says {
			says[i] = "workloads[0]: " + says[i]
		}
		return wrong{name, works(w), says}
	}
	return []wrong{
		work("a good workload", v1beta1.Workload{Selector: &metav1.LabelSelector{}, MatchOwnerKinds: []string{"None", "Kafka"}, Strategy: v1beta1.StrategyNever}),
		work("a workload with nothing in it", v1beta1.Workload{},
			"a workload has to say which pods it is for: write namespaces, selector or matchOwnerKinds",
			"a workload has to say what is different for its pods: write order or strategy"),
		work("a namespace that cannot be", v1beta1.Workload{Namespaces: []string{"db", "D B"}, Order: v1beta1.OrderLast}, `namespaces has "D B", which no namespace is called: write the name of one`),
		work("an owner of no kind", v1beta1.Workload{MatchOwnerKinds: []string{""}, Order: v1beta1.OrderLast}, "matchOwnerKinds has an empty kind: write one such as StatefulSet, None for pods that nothing controls, or remove the entry"),
		work("unknown words", v1beta1.Workload{MatchOwnerKinds: []string{"Job"}, Order: "Third", Strategy: "Move"}, `unknown order "Third": write First, Normal or Last`, `unknown strategy "Move": write Evict, Surge or Never`),
		{
			"a selector that means nothing",
			works(v1beta1.Workload{Name: "brokers", Order: v1beta1.OrderFirst, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}}),
			[]string{`workloads[brokers]: selector: "Like" is not a valid label selector operator; write matchLabels, or matchExpressions with operator In, NotIn, Exists or DoesNotExist`},
		},
	}
}

func wrongLimits() []wrong {
	const says = `budget: maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%`
	list := []wrong{{"terminations of none", drains(func(s *v1beta1.InterruptionPolicySpec) {
		s.Terminations = &v1beta1.Terminations{MaxConcurrent: intstr.FromInt32(0)}
	}), []string{`terminations: maxConcurrent must be a number of at least 1, or a percentage from 1% to 100%`}}}
	for _, l := range []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(-1), intstr.FromString("5"), intstr.FromString("0%"), intstr.FromString("101%"), intstr.FromString("05%"), intstr.FromString("+5%"), intstr.FromString("5%%"), intstr.FromString("5.5%"), intstr.FromString("")} {
		list = append(list, wrong{"a limit of " + l.String(), limited(l), []string{says}})
	}
	for _, l := range []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(500), intstr.FromString("1%"), intstr.FromString("100%")} {
		list = append(list, wrong{"a limit of " + l.String(), limited(l), nil})
	}
	return list
}

func wrongHooksAndNotifications() []wrong {
	good := v1beta1.Notification{Name: "chat", Reasons: []string{"*", "Drained"}, Webhook: page}
	return []wrong{
		{"good hooks", hooked(pages, changed(pages, func(h *v1beta1.Hook) { h.Name, h.Webhook, h.Job = "rebuild", nil, &rebuild })), nil},
		{"names that are none", hooked(changed(pages, func(h *v1beta1.Hook) { h.Name = "Page-" })), []string{
			`hooks[Page-]: name "Page-" must be of lower-case letters, digits and hyphens, 30 at most, and begin and end with none of the hyphens: write one such as move-leaders`,
		}},
		{"no name", hooked(changed(pages, func(h *v1beta1.Hook) { h.Name = "" })), []string{
			`hooks[0]: name "" must be of lower-case letters, digits and hyphens, 30 at most, and begin and end with none of the hyphens: write one such as move-leaders`,
		}},
		{"a name twice", hooked(pages, pages), []string{`hooks[page]: name "page" is taken by one before it: write another`}},
		{"too many retries", hooked(changed(pages, func(h *v1beta1.Hook) { h.Retries = 11 })), []string{"hooks[page]: retries 11 is not between 0 and 10: write one such as 2"}},
		{"a namespace that cannot be", hooked(changed(pages, func(h *v1beta1.Hook) {
			h.Webhook, h.Job = nil, &v1beta1.HookJob{Namespace: "D B", Template: rebuild.Template}
		})), []string{`hooks[page]: job.namespace "D B" is a name that no namespace has: write the name of one that the chart's value hooks.namespaces names`}},
		{"what package hook finds", hooked(changed(pages, func(h *v1beta1.Hook) { h.When = "Later" })), []string{`hooks[page]: unknown when "Later": write BeforeDrain or AfterDrain`}},
		{"a good notification", notifies(good), nil},
		{"a notification may be called as a hook is", changed(notifies(changed(good, func(n *v1beta1.Notification) { n.Name = pages.Name })), func(s *v1beta1.InterruptionPolicySpec) {
			s.Hooks = []v1beta1.Hook{pages}
		}), nil},
		{"a notification's name twice", notifies(good, good), []string{`notifications[chat]: name "chat" is taken by one before it: write another`}},
		{"a reason that does not exist", notifies(changed(good, func(n *v1beta1.Notification) { n.Reasons = []string{"Drain"} })), []string{
			`notifications[chat]: on has "Drain", which no timeline entry is called: write ` + strings.Join(policy.TimelineReasons(), ", ") + `, or "*" for all`,
		}},
		{"what package hook finds in a webhook", notifies(changed(good, func(n *v1beta1.Notification) { n.Webhook = v1beta1.Webhook{} })), []string{
			"notifications[chat]: webhook.url: a webhook has either url or urlFrom: write one of the two",
		}},
	}
}

// wrongs are invalid policies, and some valid ones.
func wrongs() []wrong {
	list := wrongBasics()
	for _, more := range [][]wrong{wrongRules(), wrongWorkloads(), wrongLimits(), wrongHooksAndNotifications()} {
		list = append(list, more...)
	}
	return list
}

func TestValidateErrorsSayWhatToWrite(t *testing.T) {
	for _, c := range wrongs() {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, policy.Validate(c.spec)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
