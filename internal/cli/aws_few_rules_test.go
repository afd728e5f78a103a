package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
)

// ruleNames returns the names of the rules in the account.
func (e *awsAccount) ruleNames() []string {
	e.t.Helper()
	all, err := e.server.States.Events.Rules("default", "")
	if err != nil {
		e.t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// TestAWSKeepsFewRules merges the rules of a cluster, and separates them again. Commands without
// the flag keep the form that they find, also with groups.
func TestAWSKeepsFewRules(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3})
	few := []string{"lifeboat-prod-autoscaling", "lifeboat-prod-ec2", "lifeboat-prod-health"}

	e.want(e.aws("setup", "--cluster", "prod", "--yes"), 0)
	if got := e.ruleNames(); len(got) != 8 {
		t.Fatalf("rules %v", got)
	}
	plan := e.aws("plan", "--cluster", "prod", "--few-rules")
	e.want(plan, ExitChanges)
	for _, text := range []string{"+ rule lifeboat-prod-ec2", "- rule lifeboat-prod-spot-interruption", "other rules deliver its events", "aws setup --cluster prod --few-rules=true"} {
		if !strings.Contains(plan.out, text) {
			t.Errorf("the plan does not have %q:\n%s", text, plan.out)
		}
	}
	e.want(e.aws("setup", "--cluster", "prod", "--few-rules", "--yes"), 0)
	if got := e.ruleNames(); !slices.Equal(got, few) {
		t.Errorf("rules %v, want %v", got, few)
	}
	e.want(e.aws("plan", "--cluster", "prod"), 0)

	e.want(e.aws("setup", "--cluster", "prod", "--groups", "nodes-a", "--yes"), 0)
	if got := e.ruleNames(); !slices.Equal(got, few) {
		t.Errorf("with groups: rules %v, want %v", got, few)
	}
	e.want(e.aws("plan", "--cluster", "prod"), 0)

	e.want(e.aws("setup", "--cluster", "prod", "--few-rules=false", "--yes"), 0)
	if got := e.ruleNames(); len(got) != 8 || slices.Contains(got, few[1]) {
		t.Errorf("separate again: rules %v", got)
	}
	e.want(e.aws("setup", "--cluster", "prod", "--yes"), 0) // the queue's policy forgets the merged ones
	e.want(e.aws("plan", "--cluster", "prod"), 0)

	e.want(e.aws("setup", "--cluster", "prod", "--few-rules", "--yes"), 0)
	e.want(e.aws("destroy", "--cluster", "prod", "--yes"), 0)
	if got := e.ruleNames(); len(got) > 0 {
		t.Errorf("destroy leaves %v", got)
	}
}
