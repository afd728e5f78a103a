package policy_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func wrongBasics() []wrong {
	windowed := func(w *v1beta1.Window) v1beta1.InterruptionPolicySpec {
		rule := on(v1beta1.ActionDrain, "*")
		rule.Window = w
		return named("p", 0, rule).Spec
	}
	good := named("p", 0, on(v1beta1.ActionDrain, "*"))
	const example = `; write minute hour day-of-month month day-of-week, such as "0 2 * * *" for 02:00 every day`
	return []wrong{
		{"a good policy", named("p", 0,
			v1beta1.Rule{Kinds: notice.Kinds(), Action: v1beta1.ActionDrain, DoNotDisrupt: v1beta1.DoNotDisruptRespect, Window: window("0 2 * * MON-FRI", time.Hour, "Europe/Berlin")},
			on(v1beta1.ActionIgnore, "*"),
		).Spec, nil},
		{"no rules", v1beta1.InterruptionPolicySpec{}, []string{"it has no rules: write at least one, or delete the policy"}},
		{"a rule with nothing in it", named("p", 0, v1beta1.Rule{}).Spec, []string{
			`rule 1: it has no kinds: write AutoScalingTermination, CapacityBlockExpiration, CapacityReservationInterruption, HealthIssue, InstanceStateChange, InstanceStatus, LifecycleActionFailure, RebalanceRecommendation, ScheduledChange, SpotInterruption, Requested, or "*" for all`,
			`rule 1: unknown action "": write Ignore, Notify, Cordon, Drain or Terminate`,
		}},
		{"an unknown kind", named("p", 0, on(v1beta1.ActionDrain, "*"), v1beta1.Rule{Name: "typo", Kinds: []string{"Spot"}, Action: v1beta1.ActionDrain}).Spec, []string{
			`rule 2 (typo): unknown kind "Spot": write AutoScalingTermination, CapacityBlockExpiration, CapacityReservationInterruption, HealthIssue, InstanceStateChange, InstanceStatus, LifecycleActionFailure, RebalanceRecommendation, ScheduledChange, SpotInterruption, Requested, or "*" for all`,
		}},
		{"unknown words", named("p", 0, v1beta1.Rule{Kinds: []string{"*"}, Action: "Evacuate", DoNotDisrupt: "Maybe"}).Spec, []string{
			`rule 1: unknown action "Evacuate": write Ignore, Notify, Cordon, Drain or Terminate`,
			`rule 1: unknown doNotDisrupt "Maybe": write Respect, UntilLastCall or Ignore`,
		}},
		{"a window that has nothing to delay", named("p", 0, v1beta1.Rule{Kinds: []string{"*"}, Action: v1beta1.ActionNotify, Window: window("0 2 * * *", time.Hour, "")}).Spec, []string{
			"rule 1: window only makes sense with action Cordon, Drain or Terminate; remove it, or change the action",
		}},
		{"a schedule of six fields", windowed(window("0 0 2 * * *", time.Hour, "")), []string{`rule 1: window: schedule "0 0 2 * * *" is not one: it has 6 fields, not 5` + example}},
		{"a schedule by name", windowed(window("@daily", time.Hour, "")), []string{`rule 1: window: schedule "@daily" is not one: it has 1 fields, not 5` + example}},
		{"a schedule with a zone", windowed(window("TZ=UTC\t2 * * *", time.Hour, "")), []string{`rule 1: window: schedule "TZ=UTC\t2 * * *" is not one: TZ= does not belong in it (use timeZone)` + example}},
		{"an hour that no day has", windowed(window("0 24 * * *", time.Hour, "")), []string{`rule 1: window: schedule "0 24 * * *" is not one: end of range (24) above maximum (23): "24"` + example}},
		{"a day that no month has", windowed(window("0 2 30 2 *", time.Hour, "")), []string{`rule 1: window: schedule "0 2 30 2 *" never comes: no month has such a day; write one that does, such as "0 2 1 * *" for the first of every month`}},
		{"a leap day comes", windowed(window("0 2 29 2 *", time.Hour, "")), nil},
		{"a duration that is too short", windowed(window("0 2 * * *", time.Second, "")), []string{"rule 1: window: duration must be between 1m and 168h, such as 2h"}},
		{"a duration that is too long", windowed(window("0 2 * * *", 169*time.Hour, "")), []string{"rule 1: window: duration must be between 1m and 168h, such as 2h"}},
		{"an unknown zone", windowed(window("0 2 * * *", time.Hour, "Europe/Atlantis")), []string{`rule 1: window: time zone "Europe/Atlantis" is not an IANA name: write UTC or one such as Europe/Berlin`}},
		{"the zone of whatever machine it runs on", windowed(window("0 2 * * *", time.Hour, "Local")), []string{`rule 1: window: time zone "Local" is not an IANA name: write UTC or one such as Europe/Berlin`}},
		{"an empty pool", selecting(good, v1beta1.NodeSelector{NodePools: []string{""}}).Spec, []string{
			"nodes.nodePools has an empty name: write the name of a Karpenter NodePool, or remove the entry",
		}},
		{"an empty node group", selecting(good, v1beta1.NodeSelector{NodeGroups: []string{"db", ""}}).Spec, []string{
			"nodes.nodeGroups has an empty name: write the name of a node group, or remove the entry",
		}},
		{"a label that no node can have", selecting(good, v1beta1.NodeSelector{MatchLabels: map[string]string{"tier": "a b"}}).Spec, []string{
			`nodes.matchLabels: values[0][tier]: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'); write a key and a value that a label can have`,
		}},
		{"an expression without values", selecting(good, v1beta1.NodeSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpExists},
			{Key: "tier", Operator: metav1.LabelSelectorOpIn},
		}}).Spec, []string{
			"nodes.matchExpressions[1]: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty; write operator In or NotIn with values, or Exists or DoesNotExist without",
		}},
	}
}
