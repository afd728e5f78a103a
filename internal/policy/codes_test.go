package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

func TestEventTypeCodesNarrowARule(t *testing.T) {
	const stop = "AWS_EC2_INSTANCE_STOP_SCHEDULED"
	for _, c := range []struct {
		name     string
		patterns []string
		code     string
		matches  bool
	}{
		{"no patterns match every code", nil, stop, true},
		{"no patterns match no code", nil, "", true},
		{"the code itself", []string{stop}, stop, true},
		{"case does not matter", []string{"aws_ec2_*_Scheduled"}, stop, true},
		{"nor the code's", []string{"INSTANCE-STOP"}, "instance-stop", true},
		{"any end", []string{"AWS_EC2_*"}, stop, true},
		{"any beginning", []string{"*_STOP_SCHEDULED"}, stop, true},
		{"anything between", []string{"AWS_*_STOP_*"}, stop, true},
		{"a star may match nothing", []string{"*AWS*_EC2**_INSTANCE_STOP_SCHEDULED*"}, stop, true},
		{"a star alone matches every code", []string{"*"}, stop, true},
		{"one of several", []string{"*_RETIREMENT_*", "*_STOP_*"}, stop, true},
		{"a star before what comes twice takes the first", []string{"*ab*ab"}, "xabyabab", true},
		{"not a part", []string{"STOP"}, stop, false},
		{"not the beginning", []string{"STOP*"}, stop, false},
		{"not the end", []string{"*_STOP"}, stop, false},
		{"beginning and end do not overlap", []string{"aba*aba"}, "aba", false},
		{"nor do those between", []string{"*ab*b"}, "ab", false},
		{"a question mark is one", []string{"?WS_EC2_INSTANCE_STOP_SCHEDULED"}, stop, false},
		{"a bracket is one", []string{"[A]WS*"}, stop, false},
		{"a notice without a code matches none", []string{"*"}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := on(v1beta1.ActionIgnore, notice.KindScheduledChange)
			rule.EventTypeCodes = c.patterns
			n := build("n", notice.KindScheduledChange, func(n *v1beta1.Notice) { n.EventTypeCode = c.code })
			d, _ := policy.Decide(policy.Facts{Now: noon, Notices: []v1beta1.Notice{n}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{named("p", 0, rule)}})
			if matches := d.Policy == "p"; matches != c.matches {
				t.Errorf("matches %t, want %t: %+v", matches, c.matches, d.Considered)
			}
		})
	}
}

func TestConsideredListsEventTypeCodes(t *testing.T) {
	coded := func(name string, codes ...string) v1beta1.Rule {
		return v1beta1.Rule{Name: name, Kinds: []string{notice.KindScheduledChange}, EventTypeCodes: codes, Action: v1beta1.ActionDrain}
	}
	p := named("db", 0, coded("reboots", "*-reboot", "*_REBOOT_*"), coded("stops", "*-stop"), coded("", "*"))
	n := build("n", notice.KindScheduledChange, func(n *v1beta1.Notice) { n.EventTypeCode = "instance-stop" })
	facts := policy.Facts{Now: noon, Notices: []v1beta1.Notice{n}, Node: node(nil), Policies: []v1beta1.InterruptionPolicy{p}}
	d, _ := policy.Decide(facts)
	want := []policy.Considered{
		{Policy: "db", Reason: "applies: no policy that selects the node has a priority above 0"},
		{Policy: "db", Rule: "reboots", Reason: "is for the codes *-reboot, *_REBOOT_*, and the notice has instance-stop"},
		{Policy: "db", Rule: "stops", Rules: true, Reason: "rules: it is the first of policy db for ScheduledChange (instance-stop)"},
		{Policy: "db", Rule: "rule 3", Reason: "is not used: rule 2 (stops) comes before it"},
		{Rule: "Unknown", Reason: "is not used: a rule of policy db applies, and this is the built-in default"},
	}
	if diff := cmp.Diff(want, d.Considered); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := "Drain: policy db, rule 2 (stops), is for ScheduledChange (instance-stop)"; d.Message != want {
		t.Errorf("message\n got %s\nwant %s", d.Message, want)
	}
	facts.Notices[0].EventTypeCode = ""
	d, _ = policy.Decide(facts)
	if got, want := d.Considered[3].Reason, "is for the codes *, and the notice has none"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
