package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// group creates an Auto Scaling group that does not launch instances.
func (e *awsAccount) group(g autoscaling.Group) {
	e.t.Helper()
	if err := e.server.States.AutoScaling.CreateGroup(g); err != nil {
		e.t.Fatal(err)
	}
}

// member launches an instance into a group.
func (e *awsAccount) member(group string, state autoscaling.LifecycleState) string {
	e.t.Helper()
	made, err := e.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1})
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.server.States.AutoScaling.Attach(group, made[0].ID, state); err != nil {
		e.t.Fatal(err)
	}
	return made[0].ID
}

// hooks returns the hooks of a group, as "name result seconds".
func (e *awsAccount) hooks(group string) []string {
	e.t.Helper()
	out := []string{}
	all, err := e.server.States.AutoScaling.Hooks(group, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, h := range all {
		out = append(out, strings.Join([]string{h.Name, string(h.DefaultResult), h.Heartbeat.String()}, " "))
	}
	slices.Sort(out)
	return out
}

func TestAWSPutsHooks(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3, WarmPool: &autoscaling.WarmPool{}})
	e.group(autoscaling.Group{Name: "nodes-b", Max: 3, Hooks: []autoscaling.Hook{
		{Name: "lifeboat-launch", Transition: autoscaling.Launching, DefaultResult: autoscaling.Continue, Heartbeat: 20 * time.Minute},
		{Name: "nodes-b-NTHLifecycleHook", Transition: autoscaling.Leaving, DefaultResult: autoscaling.Continue, Heartbeat: 5 * time.Minute},
	}})
	warm := e.member("nodes-a", autoscaling.WarmedStopped)

	plan := e.aws("plan", "--groups", "nodes-b, nodes-a")
	e.want(plan, ExitChanges)
	golden(t, "aws-plan-groups.golden", strings.ReplaceAll(plan.out, warm, "i-0warm"))
	e.interactive, e.stdin = true, "y\n"
	applied := e.aws("setup", "--groups", "nodes-a,nodes-b")
	e.want(applied, ExitOK)
	for _, want := range []string{"created or updated hook lifeboat-launch of Auto Scaling group nodes-a\n", "created or updated hook lifeboat-terminate of Auto Scaling group nodes-b\n"} {
		if !strings.Contains(applied.out, want) {
			t.Errorf("apply does not say %q:\n%s", want, applied.out)
		}
	}
	if !strings.Contains(applied.err, "each launch of nodes-a waits until Lifeboat answers its hook") {
		t.Errorf("no one is warned: %s", applied.err)
	}
	if diff := cmp.Diff([]string{"lifeboat-launch ABANDON 10m0s", "lifeboat-terminate CONTINUE 5m0s"}, e.hooks("nodes-a")); diff != "" {
		t.Errorf("hooks of nodes-a (-want +got):\n%s", diff)
	}
	// apply keeps tuned values and corrects wrong ones in place.
	if diff := cmp.Diff([]string{"lifeboat-launch ABANDON 20m0s", "lifeboat-terminate CONTINUE 5m0s", "nodes-b-NTHLifecycleHook CONTINUE 5m0s"}, e.hooks("nodes-b")); diff != "" {
		t.Errorf("hooks of nodes-b (-want +got):\n%s", diff)
	}
	e.want(e.aws("plan", "--groups", "nodes-a,nodes-b"), ExitOK)
	e.want(e.aws("plan"), ExitOK) // the groups come from the rules
	if err := e.server.States.AutoScaling.DeleteHook("nodes-a", v1beta1.TerminateHook); err != nil {
		t.Fatal(err)
	}
	drift := e.aws("plan")
	e.want(drift, ExitChanges)
	if !strings.Contains(drift.out, "hook "+v1beta1.TerminateHook) || strings.Contains(drift.out, "hook "+v1beta1.LaunchHook) {
		t.Errorf("a hook that is gone:\n%s", drift.out)
	}
	e.want(e.aws("setup", "--yes"), ExitOK)
	e.want(e.aws("plan"), ExitOK)
	e.want(e.aws("plan", "--groups", "all"), ExitChanges)
	e.want(e.aws("plan", "--groups", "nodes-a"), ExitChanges)
}

func TestAWSForNodeGroupsOfTheCluster(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.group(autoscaling.Group{Name: "nodes.prod", Max: 3})
	named := &v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{
		AutoScalingGroup: "nodes.prod", Hooks: v1beta1.LifecycleHooks{Launch: &v1beta1.LifecycleHook{Name: "kops-warmpool", TimeoutSeconds: 900}},
	}}
	named.Name = "nodes"
	e.cluster = fakeCluster(t, interceptor.Funcs{})
	e.want(e.aws("setup", "--yes", "--groups", "nodegroups"), ExitFailed) // the cluster has no NodeGroup
	e.cluster = fakeCluster(t, interceptor.Funcs{}, []client.Object{named}...)
	e.want(e.aws("setup", "--yes", "--groups", "nodegroups"), ExitOK)
	if diff := cmp.Diff([]string{"kops-warmpool ABANDON 15m0s", "lifeboat-terminate CONTINUE 5m0s"}, e.hooks("nodes.prod")); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	// destroy keeps hooks with other names.
	e.want(e.aws("destroy", "--yes"), ExitOK)
	if diff := cmp.Diff([]string{"kops-warmpool ABANDON 15m0s"}, e.hooks("nodes.prod")); diff != "" {
		t.Errorf("hooks that are left (-want +got):\n%s", diff)
	}
}

// A hook is changed in place. It is deleted only while no instance is launching
// or terminating.
func TestRace24HookReplacedWhileHeld(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3})
	e.want(e.aws("setup", "--yes", "--groups", "nodes-a"), ExitOK)
	id := e.member("nodes-a", "Pending:Wait")

	r := e.aws("destroy", "--yes")
	e.want(r, ExitFailed)
	if !strings.Contains(r.err, "while an instance is launching or terminating") || !strings.Contains(r.out, id+" (Pending:Wait)") {
		t.Errorf("it does not say what it waits for:\n%s%s", r.out, r.err)
	}
	if hooks := e.hooks("nodes-a"); len(hooks) != 2 {
		t.Errorf("hooks are gone: %v", hooks)
	}
	e.want(e.aws("plan"), ExitOK) // the rest still exists

	if err := e.server.States.AutoScaling.Attach("nodes-a", id, autoscaling.InService); err != nil {
		t.Fatal(err)
	}
	e.want(e.aws("destroy", "--yes"), ExitOK)
	if diff := cmp.Diff([]string{}, e.hooks("nodes-a")); diff != "" {
		t.Errorf("hooks that are left (-want +got):\n%s", diff)
	}
}

// An account cannot create hooks on a group that an AWS service manages.
func TestRace34GroupOwnedByAnOperator(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.group(autoscaling.Group{Name: "eks-workers", Max: 3, Operator: "eks.amazonaws.com"})
	r := e.aws("setup", "--yes", "--groups", "eks-workers")
	e.want(r, ExitOK)
	if !strings.Contains(r.out, "belongs to eks.amazonaws.com, so Lifeboat only observes it") {
		t.Errorf("it is not said whose it is:\n%s", r.out)
	}
	if hooks := e.hooks("eks-workers"); len(hooks) != 0 {
		t.Errorf("hooks: %v", hooks)
	}
}

func TestAWSMissingGroup(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	for _, command := range []string{"plan", "setup"} {
		args := []string{command, "--groups", "nodes-x"}
		if command == "setup" {
			args = append(args, "--yes")
		}
		r := e.aws(args...)
		if r.code != ExitFailed || !strings.Contains(r.err, "Auto Scaling group nodes-x does not exist") {
			t.Errorf("%s: exit code %d\n%s", command, r.code, r.err)
		}
	}
	for groups, want := range map[string]string{
		"a,,b": "contains an empty name", "arn:aws:autoscaling:eu-west-1:1:autoScalingGroup:x": "not an ARN",
	} {
		if r := e.aws("plan", "--groups", groups); r.code != ExitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d\n%s", groups, r.code, r.err)
		}
	}
}

// TestAWSPutsHooksOfManyGroups: the names do not fit into a rule, and AWS throttles.
func TestAWSPutsHooksOfManyGroups(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	var names []string
	for _, c := range "abcdefghijklmnopqrst" {
		name := strings.Repeat(string(c), 100)
		names = append(names, name)
		e.group(autoscaling.Group{Name: name, Max: 3})
	}
	e.server.Gate.Throttle("autoscaling", "PutLifecycleHook", 2)
	r := e.aws("setup", "--yes", "--groups", strings.Join(names, ","))
	e.want(r, ExitOK)
	if !strings.Contains(r.out, "The rules match all Auto Scaling groups of the account") {
		t.Errorf("setup does not say what the rules match:\n%s", r.out)
	}
	for _, name := range names {
		if got := e.hooks(name); len(got) != 2 {
			t.Errorf("hooks of %s: %v", name, got)
		}
	}
	e.want(e.aws("plan", "--groups", strings.Join(names, ",")), ExitOK)
	e.want(e.aws("plan", "--groups", "all"), ExitOK)
}

func TestAWSGroupsErrorsHaveANextStep(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.group(autoscaling.Group{Name: "nodes-a", Max: 3})
	e.server.Gate.Deny("autoscaling", "PutLifecycleHook")
	r := e.aws("setup", "--yes", "--groups", "nodes-a")
	if r.code != ExitFailed || !strings.Contains(r.err, "autoscaling:PutLifecycleHook") || !strings.Contains(r.err, "run it again to continue") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

func TestAWSEmitsHooks(t *testing.T) {
	t.Parallel()
	h := &harness{t: t}
	for format, want := range map[string]string{
		"terraform": "initial_lifecycle_hook", "cloudformation": "LifecycleHookSpecificationList", "json": "LifecycleHookSpecificationList",
	} {
		r := h.run(t.Context(), "aws", "emit", "--cluster", "prod", "--format", format, "--groups", "nodes-a")
		if r.code != ExitOK || !strings.Contains(r.err, want) || strings.Count(r.out, "EC2_INSTANCE_LAUNCHING") == 0 {
			t.Errorf("%s: exit code %d\n%s%s", format, r.code, r.err, r.out)
		}
	}
	if r := h.run(t.Context(), "aws", "emit", "--cluster", "prod"); r.err != "" || strings.Contains(r.out, "EC2_INSTANCE_LAUNCHING") {
		t.Errorf("hooks that no one asked for:\n%s%s", r.err, r.out)
	}
}

func TestAWSIAMOfGroups(t *testing.T) {
	t.Parallel()
	h := &harness{t: t}
	place := []string{"aws", "iam", "--cluster", "prod", "--account", "210987654321", "--region", "eu-west-1"}
	golden(t, "aws-iam-boot.golden", h.run(t.Context(), append(place, "--role", "boot", "--groups", "nodes-a")...).out)
	r := h.run(t.Context(), append(place, "--manage-groups", "--group-prefix", "prod-", "--node-role", "nodes.prod", "-o", "json")...)
	var p permissions
	if err := json.Unmarshal([]byte(r.out), &p); err != nil || p.Policy == nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	allowed := map[string]bool{}
	for _, s := range p.Policy.Statement {
		for _, a := range s.Action {
			allowed[a] = true
		}
	}
	for _, action := range []string{"autoscaling:CreateAutoScalingGroup", "autoscaling:PutLifecycleHook", "iam:PassRole", "autoscaling:CompleteLifecycleAction"} {
		if !allowed[action] {
			t.Errorf("%s is not allowed:\n%s", action, r.out)
		}
	}
	if w := awssetup.Desired("prod", "210987654321", "eu-west-1"); !strings.Contains(p.Note, w.Cluster+"-*") || !strings.Contains(p.Note, "NODE_ROLE") {
		t.Errorf("the note does not say what is reached: %s", p.Note)
	}
}

func TestAWSIAMOfGroupsNeedsNames(t *testing.T) {
	t.Parallel()
	h := &harness{t: t}
	place := []string{"aws", "iam", "--cluster", "prod", "--account", "210987654321", "--region", "eu-west-1"}
	for want, args := range map[string][]string{
		"--manage-groups needs the names of the groups": {"--manage-groups"},
		"--group-prefix is plain text":                  {"--manage-groups", "--group-prefix", "*"},
		"--tag-keys is only for --manage-groups":        {"--tag-keys", "team"},
		"--karpenter-queue are about the controller":    {"--role", "boot", "--cloudtrail"},
		"only for --manage-groups":                      {"--group-prefix", "prod-"},
	} {
		if r := h.run(t.Context(), append(slices.Clone(place), args...)...); r.code == ExitOK || !strings.Contains(r.err, want) {
			t.Errorf("%q: exit code %d: %s", args, r.code, r.err)
		}
	}
}

// Detaching needs the group's name, terminating needs the instance's tag. An
// instance without a tag runs outside of any group and costs money.
func TestAWSIAMWarnsAboutInstanceTags(t *testing.T) {
	t.Parallel()
	h := &harness{t: t}
	place := []string{"aws", "iam", "--cluster", "prod", "--account", "210987654321", "--region", "eu-west-1"}
	for _, tc := range []struct {
		args []string
		says bool
	}{
		{[]string{"--groups", "nodes-a,nodes-b"}, true},
		{[]string{"--groups", "nodes-a", "--manage-groups", "-o", "json"}, true},
		{nil, false},
		{[]string{"--groups", "nodes-a", "--role", "boot"}, false},
		{[]string{"--groups", "nodes-a", "--role", "setup"}, false},
	} {
		r := h.run(t.Context(), append(slices.Clone(place), tc.args...)...)
		says := strings.Contains(r.err, "autoscaling:DetachInstances") && strings.Contains(r.err, "kubernetes.io/cluster/prod=owned")
		if r.code != ExitOK || says != tc.says || !says && r.err != "" {
			t.Errorf("%q: exit code %d, says it: %v, want %v: %s", tc.args, r.code, says, tc.says, r.err)
		}
	}
}
