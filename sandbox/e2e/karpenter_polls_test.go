//go:build e2e

package e2e

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// TestKarpenterGuardWithoutEvents plans stops that no rule delivers: Karpenter and Lifeboat find them when they poll
// EC2, in both orders. The node of the NodePool without a policy goes.
func TestKarpenterGuardWithoutEvents(t *testing.T) {
	t.Parallel()
	ignored := func() *v1beta1.InterruptionPolicySpec {
		return &v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: []string{notice.KindScheduledChange}, Action: v1beta1.ActionIgnore}}}
	}
	g := newGuardRig(t, map[string]*v1beta1.InterruptionPolicySpec{"before": ignored(), "after": ignored(), "web": nil})
	g.disableRules()

	// Karpenter polls first.
	if err := errors.Join(g.StopLifeboat(), g.StopKarpenter()); err != nil {
		t.Fatal(err)
	}
	g.planStops("before", "web")
	if err := g.StartKarpenter(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.waitRefused(statusPoller, "before")
	g.waitDeleted("web")
	if err := g.StartLifeboat(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.waitPolled("before")

	// Lifeboat polls first.
	if err := g.StopKarpenter(); err != nil {
		t.Fatal(err)
	}
	g.planStops("after")
	g.waitPolled("after")
	if err := g.StartKarpenter(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.waitRefused(statusPoller, "after")
	for _, pool := range []string{"before", "after"} {
		if node, err := g.node(t.Context(), g.instances[pool]); err != nil || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
			t.Errorf("the node of %s is touched: %+v, %v", pool, node.Spec, err)
		}
	}
}

// disableRules disables all rules of the account.
func (g *guardRig) disableRules() {
	g.t.Helper()
	events := eventbridge.NewFromConfig(g.AWSConfig())
	all, err := events.ListRules(g.t.Context(), &eventbridge.ListRulesInput{})
	if err != nil || len(all.Rules) == 0 {
		g.t.Fatalf("%d rules: %v", len(all.Rules), err)
	}
	for _, rule := range all.Rules {
		if _, err := events.DisableRule(g.t.Context(), &eventbridge.DisableRuleInput{Name: rule.Name}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// waitPolled waits until Lifeboat has found the event of a NodePool in EC2.
func (g *guardRig) waitPolled(pool string) {
	g.t.Helper()
	g.waitRecorded(pool)
	in, err := g.record(g.t.Context(), g.instances[pool].ID)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, n := range in.Spec.Notices {
		if n.Source != notice.SourceEC2 {
			g.t.Errorf("the event of %s came from %s, although every rule is disabled", pool, n.Source)
		}
	}
}
