package nodegroup_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// account is an emulated account with a launch template named workers.
type account struct {
	*emulator.Server
	api *nodegroup.API
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	server.States.AutoScaling.SetTiming(autoscaling.Timing{Evaluate: time.Millisecond, Launch: time.Millisecond, Settle: time.Millisecond})
	a := &account{server, nodegroup.NewAPI(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &url, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: awshttp.StaticCredentials("AKIATEST", "secret"),
	})}
	if _, err := a.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// declare is a NodeGroup for the account.
func (a *account) declare(name string, change ...func(*v1beta1.NodeGroupSpec)) *v1beta1.NodeGroup {
	g := group(change...)
	g.Name = name
	g.Spec.LaunchTemplate = &v1beta1.LaunchTemplate{Name: "workers", Version: "$Latest"}
	g.Spec.Subnets = nil
	for _, s := range a.States.EC2.Subnets()[:2] {
		g.Spec.Subnets = append(g.Spec.Subnets, s.ID)
	}
	return g
}

func (a *account) observe(t *testing.T, name string) nodegroup.Observed {
	t.Helper()
	o, err := a.api.Observe(t.Context(), name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// settle observes, plans and applies until there is nothing left to do; it
// returns the applied steps.
func (a *account) settle(ctx context.Context, g *v1beta1.NodeGroup) (did []string, err error) {
	w := nodegroup.Want(g, "prod")
	for range 10 {
		o, err := a.api.Observe(ctx, w.Group, time.Now())
		if err != nil {
			return did, err
		}
		p := nodegroup.Diff(w, o, nodegroup.History{})
		if len(p.Steps) == 0 {
			return did, nil
		}
		for _, s := range p.Steps {
			if err := a.api.Apply(ctx, w, s); err != nil {
				return did, err
			}
			did = append(did, s.String())
		}
	}
	return did, fmt.Errorf("it does not come to rest: %v", did)
}

func (a *account) mustSettle(t *testing.T, g *v1beta1.NodeGroup) []string {
	t.Helper()
	did, err := a.settle(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Even with many concurrent creations no instance bypasses the launch hook on
// its way into service or into the pool.
func TestNoInstanceBeforeHooks(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const groups = 9
	var wg sync.WaitGroup
	for n := range groups {
		wg.Go(func() {
			did, err := a.settle(t.Context(), a.declare(fmt.Sprintf("group-%d", n), declarePool))
			if want := []string{"create group", "put warm pool"}; err != nil || !slices.Equal(did, want) {
				t.Errorf("group %d: %v, %v", n, did, err)
			}
		})
	}
	wg.Wait()
	// Each group needs one instance in service and two warm ones, and hooks
	// hold all of them.
	eventually(t, "all instances to be held", func() bool {
		held := 0
		for _, c := range a.States.AutoScaling.Trace() {
			if strings.HasSuffix(string(c.To), ":Wait") {
				held++
			}
		}
		// The pool has maxSize minus the desired capacity.
		return held == groups*5
	})
	for _, c := range a.States.AutoScaling.Trace() {
		switch c.To {
		case "Pending", "Pending:Wait", "Warmed:Pending", "Warmed:Pending:Wait":
		default:
			t.Errorf("instance %s of %s got to %s, and no one answered a hook", c.InstanceID, c.Group, c.To)
		}
	}
}

func TestDeclaredGroupOverHTTP(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	g := a.declare("workers", declarePool, func(s *v1beta1.NodeGroupSpec) {
		s.Tags, s.RetainUndrained, s.CapacityRebalance = map[string]string{"team": "db"}, yes(), yes()
		s.MixedInstances = &v1beta1.MixedInstances{InstanceTypes: []string{"m5.large", "c5.large"}, OnDemandBase: 1}
		s.Hooks.Launch = &v1beta1.LifecycleHook{TimeoutSeconds: 900}
	})
	a.mustSettle(t, g)
	o := a.observe(t, "workers")
	want := []nodegroup.Hook{
		{Name: "lifeboat-launch", Timeout: 15 * time.Minute, Global: 1500 * time.Minute, Abandons: true},
		{Name: "lifeboat-terminate", Terminating: true, Timeout: 5 * time.Minute, Global: 500 * time.Minute, Abandons: true},
	}
	if diff := cmp.Diff(want, o.Hooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if o.Settings.Current != "1" || !o.Settings.Retain || !o.Settings.CapacityRebalance || o.Pool == nil || o.Pool.Min != 2 {
		t.Errorf("settings %+v, pool %+v", o.Settings, o.Pool)
	}
	for key, value := range map[string]string{"team": "db", nodegroup.TagObject: "workers", "kubernetes.io/cluster/prod": "owned"} {
		if o.Tags[key] != value {
			t.Errorf("tag %s: %q", key, o.Tags[key])
		}
	}
	eventually(t, "an instance", func() bool { return len(a.observe(t, "workers").Instances) > 0 })
	i, _ := a.States.EC2.Instance(a.observe(t, "workers").Instances[0].ID)
	if _, there := i.Tags[nodegroup.TagObject]; there || i.Tags["team"] != "db" || i.Tags["kubernetes.io/cluster/prod"] != "owned" {
		t.Errorf("tags of an instance: %v", i.Tags)
	}
	// All settings change in place; the desired capacity does not.
	g.Spec.MinSize, g.Spec.MaxSize, g.Spec.MixedInstances = number(0), number(7), nil
	g.Spec.WarmPool.MinSize, g.Spec.WarmPool.MaxPreparedCapacity, g.Spec.WarmPool.ReuseOnScaleIn = 1, number(4), true
	g.Spec.RetainUndrained, g.Spec.Hooks.Launch.TimeoutSeconds = new(bool), 600
	if diff := cmp.Diff([]string{"put hook lifeboat-launch", "put hook lifeboat-terminate", "update group", "put warm pool"}, a.mustSettle(t, g)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o = a.observe(t, "workers")
	if o.Desired != 1 || o.Min != 0 || o.Max != 7 || o.Settings.Mixed != nil || o.Settings.Retain || o.Hooks[0].Timeout != 10*time.Minute || o.Hooks[1].Abandons ||
		o.Pool.Min != 1 || *o.Pool.MaxPrepared != 4 || !o.Pool.Reuse {
		t.Errorf("%+v, settings %+v, pool %+v", o, o.Settings, o.Pool)
	}
	g.Spec.WarmPool.MaxPreparedCapacity = nil
	a.mustSettle(t, g)
	g.Spec.WarmPool = nil
	if did := a.mustSettle(t, g); !slices.Equal(did, []string{"delete warm pool"}) {
		t.Errorf("%v", did)
	}
}

// A group that another tool created first is adopted and corrected.
func TestExistingGroup(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if err := a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: "workers", Max: 3, Template: ec2.TemplateRef{Name: "workers"}}); err != nil {
		t.Fatal(err)
	}
	g := a.declare("workers")
	if err := a.api.Apply(t.Context(), nodegroup.Want(g, ""), nodegroup.Step{Verb: nodegroup.CreateGroup}); err != nil {
		t.Errorf("creating what is there: %v", err)
	}
	did := a.mustSettle(t, g)
	if diff := cmp.Diff([]string{"put hook lifeboat-launch", "put hook lifeboat-terminate", "update group", "put tags"}, did); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Undeclared settings of a hook survive a change of the others.
	if err := a.States.AutoScaling.PutHook(autoscaling.Hook{Name: "lifeboat-terminate", Group: "workers", Transition: autoscaling.Leaving, DefaultResult: autoscaling.Abandon, Heartbeat: 2 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	a.mustSettle(t, g)
	if h, _ := a.observe(t, "workers").Hook("lifeboat-terminate"); h.Abandons || h.Timeout != 2*time.Minute {
		t.Errorf("%+v", h)
	}
	// Each step is idempotent.
	w := nodegroup.Want(g, "")
	for _, s := range []nodegroup.Step{
		{Verb: nodegroup.PutHook, Object: "lifeboat-launch"}, {Verb: nodegroup.PutTags}, {Verb: nodegroup.UpdateGroup},
		{Verb: nodegroup.DeleteHook, Object: "never-was"}, {Verb: nodegroup.DeletePool}, {Verb: nodegroup.PutPool},
	} {
		for range 2 {
			if err := a.api.Apply(t.Context(), w, s); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
}

// A hook that holds a launch is not deleted, even if it began to hold it after
// the plan.
func TestHookInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	g := a.declare("workers")
	a.mustSettle(t, g)
	eventually(t, "an instance to be held", func() bool { return len(a.observe(t, "workers").Held()) == 1 })
	err := a.api.Apply(t.Context(), nodegroup.Want(g, ""), nodegroup.Step{Verb: nodegroup.DeleteHook, Object: "lifeboat-launch"})
	if err == nil || !strings.Contains(err.Error(), "Pending:Wait") {
		t.Errorf("deleting it: %v", err)
	}
	if _, there := a.observe(t, "workers").Hook("lifeboat-launch"); !there {
		t.Error("it is gone")
	}
}

func TestEmptyGroupIsDeleted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	g := a.declare("workers", declarePool)
	a.mustSettle(t, g)
	w := nodegroup.Want(g, "")
	if _, waits := nodegroup.Teardown(a.observe(t, "workers"), ""); waits == "" {
		t.Fatal("a group with an instance is not waited for")
	}
	if err := a.api.Apply(t.Context(), w, nodegroup.Step{Verb: nodegroup.DeleteGroup}); !cloud.IsBusy(err) {
		t.Errorf("deleting a group that is not empty: %v", err)
	}
	g.Spec.MinSize = number(0)
	a.mustSettle(t, g)
	if err := a.States.AutoScaling.SetDesired("workers", 0, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the group to be gone", func() bool {
		o := a.observe(t, "workers")
		for _, i := range o.Held() {
			for _, hook := range []string{"lifeboat-launch", "lifeboat-terminate"} {
				_ = a.States.AutoScaling.Complete(autoscaling.Ref{Group: "workers", Hook: hook, InstanceID: i.ID}, autoscaling.Continue) // the other's
			}
		}
		all, _ := nodegroup.Teardown(o, "")
		for _, s := range all {
			if err := a.api.Apply(t.Context(), w, s); err != nil && !cloud.IsBusy(err) {
				t.Fatalf("%s: %v", s, err)
			}
		}
		return !o.Exists
	})
}

func TestOperatorRejectsOtherCallers(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if err := a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: "workers", Max: 3, Template: ec2.TemplateRef{Name: "workers"}, Operator: "eks.amazonaws.com"}); err != nil {
		t.Fatal(err)
	}
	g := a.declare("workers")
	if did := a.mustSettle(t, g); len(did) != 0 {
		t.Errorf("tried %v", did)
	}
	err := a.api.Apply(t.Context(), nodegroup.Want(g, ""), nodegroup.Step{Verb: nodegroup.PutHook, Object: "lifeboat-launch"})
	if !cloud.IsDenied(err) || !strings.Contains(err.Error(), "allow autoscaling:PutLifecycleHook") || strings.Contains(err.Error(), "RequestID") {
		t.Errorf("putting a hook despite the conflict: %v", err)
	}
}
