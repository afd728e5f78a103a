package policy_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// gated requires approval for everything, and has a typo in a rule for another kind.
func gated() v1beta1.InterruptionPolicy {
	p := named("databases", 10,
		v1beta1.Rule{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Approval: v1beta1.ApprovalRequired},
		on(v1beta1.ActionIgnore, "Rebalance"))
	p.Spec.Hooks = []v1beta1.Hook{{Name: "move-leaders", When: v1beta1.HookBeforeDrain}}
	return selecting(p, v1beta1.NodeSelector{NodePools: []string{"db"}})
}

// The restrictions of an invalid policy cannot be read, so no action that can wait begins
// without approval. What cannot wait is drained by the default.
func TestInvalidPolicyStillGates(t *testing.T) {
	t.Parallel()
	planned := build("change", notice.KindScheduledChange, due(noon.Add(30*time.Minute), v1beta1.DeadlineSoft),
		func(n *v1beta1.Notice) { n.InstanceAction = notice.ActionStop })
	other := named("others", 0, on(v1beta1.ActionDrain, "*"))
	for name, c := range map[string]struct {
		notice v1beta1.Notice
		action v1beta1.Action
		awaits bool
	}{
		"a planned stop, half an hour away":     {planned, v1beta1.ActionDrain, true},
		"an instance that fails its checks":     {build("sick", notice.KindInstanceStatus), v1beta1.ActionNotify, false},
		"a spot interruption":                   {spot(), v1beta1.ActionDrain, false},
		"an instance that shuts down":           {state(notice.StateShuttingDown), v1beta1.ActionDrain, false},
		"a group that terminates the instance":  {build("asg", notice.KindAutoScalingTermination), v1beta1.ActionDrain, false},
		"a hint, about which nothing is begun":  {rebalance(), v1beta1.ActionNotify, false},
		"an issue that a person has to look at": {build("issue", notice.KindHealthIssue), v1beta1.ActionNotify, false},
	} {
		facts := policy.Facts{Now: noon, Notices: []v1beta1.Notice{c.notice}, Node: ofPool("db"), Policies: []v1beta1.InterruptionPolicy{gated(), other}}
		d, _ := policy.Decide(facts)
		if d.Action != c.action || d.AwaitsApproval != c.awaits || !d.ProceedsAt.IsZero() || d.Policy != "" || d.EffectivePolicy != "" || len(d.Hooks) > 0 {
			t.Errorf("%s: %+v", name, d.Decision)
		}
		for _, want := range []string{"policy databases is not valid", `rule 2: unknown kind "Rebalance"`, "and 1 more", "correct it", "kubectl describe interruptionpolicy databases"} {
			if !strings.Contains(d.Message, want) {
				t.Errorf("%s: the message does not have %q: %s", name, want, d.Message)
			}
		}
		if strings.Contains(d.Message, "lifeboat approve ip-10-0-0-1") != c.awaits {
			t.Errorf("%s: %s", name, d.Message)
		}
		if !c.awaits {
			continue
		}
		facts.Approval = &v1beta1.UserAction{By: "ann", Time: metav1.NewMicroTime(noon), About: d.About}
		if d, _ = policy.Decide(facts); d.AwaitsApproval || d.Action != c.action {
			t.Errorf("%s, approved: %s", name, d.Message)
		}
	}
}

// Another policy or the default applies instead.
func TestInvalidSelectorSelectsNothing(t *testing.T) {
	t.Parallel()
	broken := selecting(gated(), v1beta1.NodeSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "role", Operator: "Near", Values: []string{"db"}}}})
	facts := policy.Facts{
		Now: noon, Notices: []v1beta1.Notice{build("sick", notice.KindInstanceStatus)}, Node: ofPool("db"),
		Policies: []v1beta1.InterruptionPolicy{broken, named("others", 0, on(v1beta1.ActionNotify, "*"))},
	}
	d, _ := policy.Decide(facts)
	if d.Policy != "others" || d.AwaitsApproval || !strings.Contains(d.Considered[0].Reason, "selects no node, since its selector is not valid: nodes.matchExpressions[0]") {
		t.Errorf("%+v; %s", d.Considered, d.Message)
	}
}
