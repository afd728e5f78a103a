package nodegroup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// The races of docs/races.md about the set-up of a group.

func TestRace01InstancesBeforeTheHook(t *testing.T) {
	t.Parallel()
	t.Run("a group is created with its hooks in the one call", func(t *testing.T) {
		t.Parallel()
		p := plan(group(), nodegroup.Observed{Name: "workers"})
		if len(p.Steps) != 1 || !strings.Contains(steps(p)[0], "LifecycleHookSpecificationList=lifeboat-launch, lifeboat-terminate") {
			t.Errorf("%v", steps(p))
		}
	})
	w := nodegroup.Want(group(), "")
	before := seen(noHooks, with(map[string]string{
		"i-1": "InService", "i-2": "Pending", "i-3": "Warmed:Stopped", "i-4": "Warmed:Pending", "i-5": "Terminating",
	}))
	ids := nodegroup.Unhooked(nil, before)
	if diff := cmp.Diff([]string{"i-2", "i-3", "i-4"}, ids); diff != "" {
		t.Fatalf("went past the hook (-want +got):\n%s", diff)
	}
	t.Run("those that went past it are remembered until a hook holds them or they serve", func(t *testing.T) {
		t.Parallel()
		after := seen(with(map[string]string{"i-1": "InService", "i-2": "InService", "i-3": "Warmed:Stopped", "i-4": "Warmed:Pending:Wait", "i-6": "Warmed:Stopped"}))
		if diff := cmp.Diff([]string{"i-3"}, nodegroup.Unhooked(ids, after)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("hooks reading that change nothing", func(t *testing.T) {
		t.Parallel()
		blind := seen(noHooks, func(o *nodegroup.Observed) { o.HooksKnown = false })
		if diff := cmp.Diff(ids, nodegroup.Unhooked(ids, blind)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("other hooks hold launches, and EKS manages its own", func(t *testing.T) {
		t.Parallel()
		others := seen(with(map[string]string{"i-3": "Warmed:Stopped"}), func(o *nodegroup.Observed) { o.Hooks[0].Name = "somebodys" })
		eks := seen(noHooks, with(map[string]string{"i-3": "Warmed:Stopped"}), func(o *nodegroup.Observed) { o.Operator = "eks.amazonaws.com" })
		for _, o := range []nodegroup.Observed{others, eks} {
			if got := nodegroup.Unhooked(nil, o); len(got) != 0 {
				t.Errorf("%v", got)
			}
		}
	})
	t.Run("they are a finding", func(t *testing.T) {
		t.Parallel()
		p := nodegroup.Diff(w, seen(), nodegroup.History{Unhooked: []string{"i-3"}})
		f, ok := find(p, "instances-before-hook")
		if !ok || !strings.Contains(f.Problem, "i-3") || !strings.Contains(f.Fix, "aws ec2 terminate-instances --instance-ids i-3") {
			t.Errorf("%+v", p.Findings)
		}
	})
}

func TestRace02PoolBeforeTheHook(t *testing.T) {
	t.Parallel()
	// From nothing and from any intermediate state: no plan creates the pool
	// before the launch hook was observed.
	declared := group(declarePool)
	for name, o := range map[string]nodegroup.Observed{
		"no group":                       {Name: "workers"},
		"no hooks":                       seen(noHooks),
		"hooks not known":                seen(func(o *nodegroup.Observed) { o.HooksKnown = false }),
		"the terminate hook alone":       seen(func(o *nodegroup.Observed) { o.Hooks = o.Hooks[1:] }),
		"another's launch hook":          seen(func(o *nodegroup.Observed) { o.Hooks[0].Name = "somebodys" }),
		"a hook of its name, misplaced":  seen(func(o *nodegroup.Observed) { o.Hooks[0].Terminating = true }),
		"a pool to change, and no hooks": seen(noHooks, withPool, func(o *nodegroup.Observed) { o.Pool.Min = 0 }),
	} {
		for _, s := range plan(declared, o).Steps {
			if s.Verb == nodegroup.PutPool || s.Verb == nodegroup.DeletePool {
				t.Errorf("%s: %s", name, s)
			}
		}
	}
	if got := steps(plan(declared, seen())); len(got) != 1 || !strings.HasPrefix(got[0], "put warm pool") {
		t.Errorf("with the hook there: %v", got)
	}
	for _, m := range []v1beta1.Management{v1beta1.ManageNothing, v1beta1.ManageHooks, v1beta1.ManageAll} {
		f, ok := find(plan(group(declarePool, manage(m)), seen(noHooks, withPool)), "pool-without-hook")
		if !ok || f.Severity != finding.Broken || f.Fix == "" {
			t.Errorf("%s: a pool without a hook: %+v", m, f)
		}
	}
}

func TestRace24HookReplacedWhileHeld(t *testing.T) {
	t.Parallel()
	renamed := group(func(s *v1beta1.NodeGroupSpec) { s.Hooks.Launch = &v1beta1.LifecycleHook{Name: "mine"} })
	mine := nodegroup.Hook{Name: "mine", Timeout: 10 * time.Minute, Abandons: true}
	both := func(o *nodegroup.Observed) { o.Hooks = append(o.Hooks, mine) }

	t.Run("a hook is changed in its place while it holds instances", func(t *testing.T) {
		t.Parallel()
		o := seen(with(map[string]string{"i-1": "Pending:Wait"}), func(o *nodegroup.Observed) { o.Hooks[0].Abandons = false })
		if diff := cmp.Diff([]string{"put hook lifeboat-launch DefaultResult=ABANDON"}, steps(plan(group(), o))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("its successor is put before it goes", func(t *testing.T) {
		t.Parallel()
		if diff := cmp.Diff([]string{"put hook mine HeartbeatTimeout=600 s DefaultResult=ABANDON"}, steps(plan(renamed, seen()))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("it goes while nothing is on its way", func(t *testing.T) {
		t.Parallel()
		if diff := cmp.Diff([]string{"delete hook lifeboat-launch"}, steps(plan(renamed, seen(both)))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for _, state := range []string{"Pending", "Pending:Wait", "Pending:Proceed", "Warmed:Pending", "Warmed:Pending:Wait"} {
		p := plan(renamed, seen(both, with(map[string]string{"i-1": state})))
		if len(p.Steps) != 0 || len(p.Held) != 1 || !strings.Contains(p.Held[0], "i-1 ("+state+")") {
			t.Errorf("with an instance in %s: %v, held %v", state, steps(p), p.Held)
		}
	}
	if _, ok := find(plan(renamed, seen(both)), "hook-stale"); !ok {
		t.Error("two hooks of Lifeboat's on one transition are no finding")
	}
	// Deleting a terminate hook terminates the instances that it holds without
	// a drain.
	h := nodegroup.Hook{Name: v1beta1.TerminateHook, Terminating: true}
	for state, removable := range map[string]bool{"Terminating:Wait": false, "Terminating": false, "Warmed:Terminating:Wait": false, "Warmed:Pending:Wait": false, "Pending:Wait": true, "InService": true} {
		if err := nodegroup.Removable(seen(with(map[string]string{"i-1": state})), h); (err == nil) != removable {
			t.Errorf("a terminate hook with an instance in %s: %v", state, err)
		}
	}
}

func TestRace29WarmButOutdated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*nodegroup.Observed)
		want   string // instances that are outdated
	}{
		"all of the version in force": {func(*nodegroup.Observed) {}, ""},
		"one of an older one":         {func(o *nodegroup.Observed) { o.Instances[1].TemplateVersion = "2" }, "i-2 (Warmed:Stopped)"},
		"one in service is not meant": {func(o *nodegroup.Observed) { o.Instances[0].TemplateVersion = "2" }, ""},
		"the version is not known, a member is younger": {func(o *nodegroup.Observed) {
			o.Settings.Current, o.Instances[0].TemplateVersion = "", "10"
			o.Instances[1].TemplateVersion = "9"
		}, "i-2 (Warmed:Stopped), i-3 (Warmed:Pending)"},
		"nothing is known": {func(o *nodegroup.Observed) {
			o.Settings = nil
			for i := range o.Instances {
				o.Instances[i].TemplateVersion = ""
			}
		}, ""},
	} {
		o := seen(with(map[string]string{"i-1": "InService", "i-2": "Warmed:Stopped", "i-3": "Warmed:Pending"}), tc.change)
		f, found := find(plan(group(), o), "warm-outdated")
		if found != (tc.want != "") || !strings.Contains(f.Problem, tc.want) {
			t.Errorf("%s: %+v, want %q", name, f, tc.want)
		}
	}
}

func TestRace34GroupOwnedByAnOperator(t *testing.T) {
	t.Parallel()
	eks := func(o *nodegroup.Observed) {
		o.Operator = "eks.amazonaws.com"
		o.Tags = map[string]string{"eks:nodegroup-name": "blue", "eks:cluster-name": "prod"}
	}
	for _, m := range []v1beta1.Management{v1beta1.ManageNothing, v1beta1.ManageHooks, v1beta1.ManageAll} {
		p := plan(group(manage(m), declarePool), seen(eks, noHooks, func(o *nodegroup.Observed) { o.Max = 9 }))
		if len(p.Steps) != 0 {
			t.Errorf("%s: %v", m, steps(p))
		}
		f, ok := find(p, "operator-owned")
		if !ok || !strings.Contains(f.Fix, "aws eks update-nodegroup-config --nodegroup-name blue --cluster-name prod") {
			t.Errorf("%s: %+v", m, f)
		}
		if finding.Has(p.Findings, finding.Broken) {
			t.Errorf("%s: a fact that only the operator can change is a broken finding: %+v", m, p.Findings)
		}
	}
	// EKS groups from before the Operator field: hooks may be changed, nothing
	// else.
	older := seen(noHooks, func(o *nodegroup.Observed) { eks(o); o.Operator = ""; o.Max = 9 })
	if diff := cmp.Diff([]string{putLaunch, putTerminate}, steps(plan(group(), older))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRace35AbandonChosenByTimeout(t *testing.T) {
	t.Parallel()
	abandons := func(o *nodegroup.Observed) { o.Hooks[1].Abandons = true }
	retains := func(o *nodegroup.Observed) { o.Settings.Retain = true }
	retain := func(s *v1beta1.NodeGroupSpec) { s.RetainUndrained = yes() }
	for name, tc := range map[string]struct {
		group    *v1beta1.NodeGroup
		observed nodegroup.Observed
		steps    []string
		finding  string
	}{
		"a terminate hook goes on":                             {group(), seen(), []string{}, ""},
		"one that abandons is put right":                       {group(), seen(abandons), []string{"put hook lifeboat-terminate DefaultResult=CONTINUE"}, "terminate-hook-abandons"},
		"it is reported if the group is only observed":         {group(manage(v1beta1.ManageNothing)), seen(abandons), []string{}, "terminate-hook-abandons"},
		"it abandons where undrained ones are kept":            {group(retain), seen(abandons, retains), []string{}, ""},
		"keeping them takes both":                              {group(retain), seen(), []string{"put hook lifeboat-terminate DefaultResult=ABANDON", "update group InstanceLifecyclePolicy=retain"}, ""},
		"nothing is kept by a hook that goes on":               {group(retain, manage(v1beta1.ManageNothing)), seen(retains), []string{}, "retains-nothing"},
		"a group that keeps them already is let be":            {group(), seen(abandons, retains), []string{}, ""},
		"retained instances wait for a user, and are reported": {group(retain), seen(abandons, retains, with(map[string]string{"i-1": "Terminating:Retained"})), []string{}, "instances-retained"},
	} {
		p := plan(tc.group, tc.observed)
		if diff := cmp.Diff(tc.steps, steps(p)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
		for _, id := range []string{"terminate-hook-abandons", "retains-nothing", "instances-retained"} {
			if _, ok := find(p, id); ok != (id == tc.finding) {
				t.Errorf("%s: finding %s: %v", name, id, ok)
			}
		}
	}
}
