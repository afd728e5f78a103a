package nodegroup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// group is a NodeGroup that declares everything.
func group(change ...func(*v1beta1.NodeGroupSpec)) *v1beta1.NodeGroup {
	g := &v1beta1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "workers"},
		Spec: v1beta1.NodeGroupSpec{
			Management: v1beta1.ManageAll, LaunchTemplate: &v1beta1.LaunchTemplate{Name: "workers", Version: "3"},
			MinSize: number(1), MaxSize: number(5), Subnets: []string{"subnet-b", "subnet-a"},
		},
	}
	for _, c := range change {
		c(&g.Spec)
	}
	return g
}

func number(n int32) *int32 { return &n }

func yes() *bool { b := true; return &b }

// seen is a group that matches the spec, with its hooks and some instances.
func seen(change ...func(*nodegroup.Observed)) nodegroup.Observed {
	o := nodegroup.Observed{
		Exists: true, Name: "workers", Min: 1, Max: 5, Desired: 2, HooksKnown: true, PoolKnown: true,
		Tags: map[string]string{nodegroup.TagObject: "workers"},
		Hooks: []nodegroup.Hook{
			{Name: v1beta1.LaunchHook, Timeout: 10 * time.Minute, Global: 1000 * time.Minute, Abandons: true},
			{Name: v1beta1.TerminateHook, Terminating: true, Timeout: 5 * time.Minute, Global: 500 * time.Minute},
		},
		Instances: []nodegroup.Instance{instance("i-1", "InService"), instance("i-2", "InService")},
		Settings: &nodegroup.Settings{
			Template: &v1beta1.LaunchTemplate{ID: "lt-1", Name: "workers", Version: "3"}, Current: "3", Subnets: []string{"subnet-a", "subnet-b"},
		},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func instance(id, state string) nodegroup.Instance {
	return nodegroup.Instance{ID: id, State: state, At: lifecycle.Read(state), TemplateVersion: "3"}
}

func with(states map[string]string) func(*nodegroup.Observed) {
	return func(o *nodegroup.Observed) {
		o.Instances = nil
		for id, state := range states {
			o.Instances = append(o.Instances, instance(id, state))
		}
		slices.SortFunc(o.Instances, func(a, b nodegroup.Instance) int { return strings.Compare(a.ID, b.ID) })
	}
}

func plan(g *v1beta1.NodeGroup, o nodegroup.Observed) nodegroup.Plan {
	return nodegroup.Diff(nodegroup.Want(g, ""), o, nodegroup.History{})
}

// steps formats the steps of a plan.
func steps(p nodegroup.Plan) []string {
	out := []string{}
	for _, s := range p.Steps {
		var parts []string
		for _, c := range s.Changes {
			parts = append(parts, c.Name+"="+c.WillBe)
		}
		out = append(out, strings.TrimSpace(s.String()+" "+strings.Join(parts, " ")))
	}
	return out
}

func find(p nodegroup.Plan, id string) (finding.Finding, bool) {
	i := slices.IndexFunc(p.Findings, func(f finding.Finding) bool { return f.ID == id })
	if i < 0 {
		return finding.Finding{}, false
	}
	return p.Findings[i], true
}

func noHooks(o *nodegroup.Observed)  { o.Hooks = nil }
func withPool(o *nodegroup.Observed) { o.Pool = &nodegroup.Pool{State: "Stopped", Min: 2} }
func declarePool(s *v1beta1.NodeGroupSpec) {
	s.WarmPool = &v1beta1.WarmPool{State: "Stopped", MinSize: 2}
}
func manage(m v1beta1.Management) func(*v1beta1.NodeGroupSpec) {
	return func(s *v1beta1.NodeGroupSpec) { s.Management = m }
}

const (
	putLaunch    = "put hook lifeboat-launch HeartbeatTimeout=600 s DefaultResult=ABANDON"
	putTerminate = "put hook lifeboat-terminate HeartbeatTimeout=300 s DefaultResult=CONTINUE"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group    *v1beta1.NodeGroup
		observed nodegroup.Observed
		steps    []string
		held     string
	}{
		"a group as declared needs nothing": {group(), seen(), []string{}, ""},
		"a group that is missing is created with its hooks": {group(declarePool), nodegroup.Observed{Name: "workers"},
			[]string{"create group LifecycleHookSpecificationList=lifeboat-launch, lifeboat-terminate MinSize=1 MaxSize=5 LaunchTemplate=workers, version 3"}, "after the launch hook was observed"},
		"one that is only observed is not created":           {group(manage(v1beta1.ManageNothing)), nodegroup.Observed{Name: "workers"}, []string{}, ""},
		"nor one of which only the hooks are":                {group(manage(v1beta1.ManageHooks)), nodegroup.Observed{Name: "workers"}, []string{}, ""},
		"hooks are put, and nothing else":                    {group(manage(v1beta1.ManageHooks), declarePool), seen(noHooks, func(o *nodegroup.Observed) { o.Max = 9 }), []string{putLaunch, putTerminate}, ""},
		"nothing is put where it is only observed":           {group(manage(v1beta1.ManageNothing)), seen(noHooks), []string{}, ""},
		"hooks that are not known are not put":               {group(), seen(noHooks, func(o *nodegroup.Observed) { o.HooksKnown = false }), []string{}, "after the existing ones could be read"},
		"a timeout that no one declared stays":               {group(), seen(func(o *nodegroup.Observed) { o.Hooks[0].Timeout = time.Hour }), []string{}, ""},
		"one that is declared is put":                        {group(func(s *v1beta1.NodeGroupSpec) { s.Hooks.Launch = &v1beta1.LifecycleHook{TimeoutSeconds: 900} }), seen(), []string{"put hook lifeboat-launch HeartbeatTimeout=900 s"}, ""},
		"a default result of CONTINUE for launches is wrong": {group(), seen(func(o *nodegroup.Observed) { o.Hooks[0].Abandons = false }), []string{"put hook lifeboat-launch DefaultResult=ABANDON"}, ""},
		"unless that is declared":                            {group(func(s *v1beta1.NodeGroupSpec) { s.Hooks.Launch = &v1beta1.LifecycleHook{OnTimeout: "CONTINUE"} }), seen(func(o *nodegroup.Observed) { o.Hooks[0].Abandons = false }), []string{}, ""},
		"a hook of the other transition is let be":           {group(), seen(func(o *nodegroup.Observed) { o.Hooks[0].Terminating = true }), []string{}, "holds the other transition"},
		"sizes are changed":                                  {group(), seen(func(o *nodegroup.Observed) { o.Min, o.Max = 0, 9 }), []string{"update group MinSize=1 MaxSize=5"}, ""},
		"not so that running nodes go":                       {group(), seen(func(o *nodegroup.Observed) { o.Max, o.Desired = 9, 7 }), []string{}, "when the desired capacity is no higher (now 7)"},
		"the template is changed":                            {group(), seen(func(o *nodegroup.Observed) { o.Settings.Template.Version = "2" }), []string{"update group LaunchTemplate=workers, version 3"}, ""},
		"a template named by its id is the same":             {group(func(s *v1beta1.NodeGroupSpec) { s.LaunchTemplate = &v1beta1.LaunchTemplate{ID: "lt-1", Version: "3"} }), seen(), []string{}, ""},
		"several types": {group(func(s *v1beta1.NodeGroupSpec) {
			s.MixedInstances = &v1beta1.MixedInstances{InstanceTypes: []string{"m5.large", "m6i.large"}}
		}), seen(), []string{"update group MixedInstancesPolicy=m5.large m6i.large; 0 on demand, then 0%; spot price-capacity-optimized"}, ""},
		"subnets in another order are the same":      {group(), seen(func(o *nodegroup.Observed) { slices.Reverse(o.Settings.Subnets) }), []string{}, ""},
		"rebalancing and retention":                  {group(func(s *v1beta1.NodeGroupSpec) { s.CapacityRebalance, s.RetainUndrained = yes(), yes() }), seen(), []string{"put hook lifeboat-terminate DefaultResult=ABANDON", "update group CapacityRebalance=true InstanceLifecyclePolicy=retain"}, ""},
		"tags that are missing":                      {group(func(s *v1beta1.NodeGroupSpec) { s.Tags = map[string]string{"team": "db"} }), seen(func(o *nodegroup.Observed) { o.Tags["other"] = "stays" }), []string{"put tags Tag team=db"}, ""},
		"settings that were not read are not judged": {group(), seen(func(o *nodegroup.Observed) { o.Settings = nil }), []string{}, "after they could be read"},
		"a pool is put where the hook is there":      {group(declarePool), seen(), []string{"put warm pool PoolState=Stopped MinSize=2 ReuseOnScaleIn=false"}, ""},
		"a pool as declared needs nothing":           {group(declarePool), seen(withPool), []string{}, ""},
		"a bound that was taken away is no bound":    {group(declarePool), seen(withPool, func(o *nodegroup.Observed) { o.Pool.MaxPrepared = number(-1) }), []string{}, ""},
		"a pool is changed":                          {group(declarePool), seen(withPool, func(o *nodegroup.Observed) { o.Pool.Min = 1 }), []string{"put warm pool MinSize=2"}, ""},
		"a pool that is not declared goes":           {group(), seen(withPool), []string{"delete warm pool"}, ""},
		"one that AWS is deleting is waited for":     {group(declarePool), seen(withPool, func(o *nodegroup.Observed) { o.Pool.Deleting = true }), []string{}, "AWS is deleting the warm pool"},
		"nothing is done to a group that is deleted": {group(), seen(noHooks, func(o *nodegroup.Observed) { o.Deleting = true }), []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(tc.group, tc.observed)
			if diff := cmp.Diff(tc.steps, steps(p)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if held := strings.Join(p.Held, "\n"); !strings.Contains(held, tc.held) || tc.held == "" && held != "" {
				t.Errorf("held: %q, want %q", held, tc.held)
			}
			for _, f := range p.Findings {
				if f.Problem == "" || f.Fix == "" || f.Object == "" {
					t.Errorf("finding %+v", f)
				}
			}
		})
	}
}

// No plan changes the desired capacity, and applying a plan twice has the same
// effect as once.
func TestDesiredCapacityIsNotPlanned(t *testing.T) {
	t.Parallel()
	for _, o := range []nodegroup.Observed{seen(), seen(noHooks), {Name: "workers"}, seen(withPool), seen(func(o *nodegroup.Observed) { o.Min, o.Max, o.Desired = 0, 0, 0 })} {
		for _, s := range plan(group(declarePool), o).Steps {
			for _, c := range s.Changes {
				if strings.Contains(c.Name, "Desired") {
					t.Errorf("%s changes %s", s, c.Name)
				}
			}
		}
	}
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	serving := map[string]string{"i-1": "InService"}
	for name, tc := range map[string]struct {
		observed nodegroup.Observed
		steps    []string
		waits    string
	}{
		"a group that is gone":                  {nodegroup.Observed{}, []string{}, ""},
		"running nodes are not taken down":      {seen(with(serving), withPool), []string{}, "it has 1 instance outside its warm pool: i-1 (InService)"},
		"nor those that come up":                {seen(with(map[string]string{"i-1": "Pending:Wait"})), []string{}, "Scale it down"},
		"nor those that wait for a user":        {seen(with(map[string]string{"i-1": "Terminating:Retained"})), []string{}, "Scale it down"},
		"nor what is in a state no one knows":   {seen(with(map[string]string{"i-1": "Quarantined"})), []string{}, "Scale it down"},
		"the pool goes first, by force":         {seen(with(map[string]string{"i-1": "Warmed:Stopped"}), withPool), []string{"drop warm pool"}, ""},
		"its going is waited for":               {seen(with(nil), withPool, func(o *nodegroup.Observed) { o.Pool.Deleting = true }), []string{}, "AWS is deleting the warm pool"},
		"then the group":                        {seen(with(nil)), []string{"delete group"}, ""},
		"its going is waited for as well":       {seen(with(nil), func(o *nodegroup.Observed) { o.Deleting = true }), []string{}, "AWS is deleting Auto Scaling group workers"},
		"an operator's group is not ours to go": {seen(with(nil), func(o *nodegroup.Observed) { o.Operator = "eks.amazonaws.com" }), []string{}, "belongs to eks.amazonaws.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, waits := nodegroup.Teardown(tc.observed, "prod")
			if diff := cmp.Diff(tc.steps, steps(nodegroup.Plan{Steps: all})); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if !strings.Contains(waits, strings.TrimPrefix(tc.waits, "it has ")) || tc.waits == "" && waits != "" {
				t.Errorf("waits for %q, want %q", waits, tc.waits)
			}
		})
	}
}

func TestDeletionIsAnnounced(t *testing.T) {
	t.Parallel()
	deleting := group(func(s *v1beta1.NodeGroupSpec) { s.DeletionPolicy = v1beta1.DeleteGroup })
	named := group(func(s *v1beta1.NodeGroupSpec) { s.Hooks.Launch = &v1beta1.LifecycleHook{Name: "kops-warmpool"} })
	for name, tc := range map[string]struct {
		group    *v1beta1.NodeGroup
		observed nodegroup.Observed
		want     string
	}{
		"kept":           {group(), seen(), "nothing in AWS: Auto Scaling group workers and its nodes stay as they are"},
		"gone":           {group(), nodegroup.Observed{}, "nothing in AWS: there is no Auto Scaling group workers"},
		"hooks are left": {named, seen(func(o *nodegroup.Observed) { o.Hooks[0].Name = "kops-warmpool" }), "Its hooks kops-warmpool stay too, and Lifeboat answers them only if"},
		"deleted":        {deleting, seen(), "it terminates no running node"},
		"never":          {deleting, seen(func(o *nodegroup.Observed) { o.Operator = "eks.amazonaws.com" }), "waits forever"},
	} {
		if got := nodegroup.Deletion(nodegroup.Want(tc.group, ""), tc.observed); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
