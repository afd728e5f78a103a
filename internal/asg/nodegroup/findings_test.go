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

func TestFindings(t *testing.T) {
	t.Parallel()
	observing := manage(v1beta1.ManageNothing)
	boots := func(longest int32) nodegroup.History {
		return nodegroup.History{Boots: &v1beta1.BootTimes{Count: 3, LongestSeconds: longest}}
	}
	suspend := func(process, reason string) func(*nodegroup.Observed) {
		return func(o *nodegroup.Observed) { o.Suspended = []nodegroup.Suspension{{Process: process, Reason: reason}} }
	}
	for name, tc := range map[string]struct {
		group    *v1beta1.NodeGroup
		observed nodegroup.Observed
		history  nodegroup.History
		id       string
		severity finding.Severity
		problem  string
		fix      string
	}{
		"a group that is not there":     {group(observing), nodegroup.Observed{}, nodegroup.History{}, "group-missing", finding.Broken, "no Auto Scaling group of this name", "correct spec.autoScalingGroup"},
		"one that Lifeboat will create": {group(), nodegroup.Observed{}, nodegroup.History{}, "group-missing", finding.Info, "creates it and its hooks", "Synced"},
		"one that AWS deletes":          {group(), seen(func(o *nodegroup.Observed) { o.Deleting = true }), nodegroup.History{}, "group-deleting", finding.Broken, "deleting", "delete this NodeGroup"},
		"hooks that are not known":      {group(), seen(func(o *nodegroup.Observed) { o.HooksKnown = false }), nodegroup.History{}, "hooks-unknown", finding.Unknown, "could not be read", "autoscaling:DescribeLifecycleHooks"},
		"no launch hook": {group(observing), seen(noHooks), nodegroup.History{}, "launch-hook-missing", finding.Broken, "before their nodes are Ready",
			"`aws autoscaling put-lifecycle-hook --auto-scaling-group-name workers --lifecycle-hook-name lifeboat-launch --lifecycle-transition autoscaling:EC2_INSTANCE_LAUNCHING --default-result ABANDON --heartbeat-timeout 600`"},
		"no terminate hook":                 {group(observing), seen(noHooks), nodegroup.History{}, "terminate-hook-missing", finding.Broken, "without waiting for the drain", "--heartbeat-timeout 300`"},
		"no hook, which Lifeboat sets":      {group(), seen(noHooks), nodegroup.History{}, "launch-hook-missing", finding.Broken, "no launch hook", "nothing: Lifeboat sets it"},
		"no hook, but another tool's":       {group(observing), seen(func(o *nodegroup.Observed) { o.Hooks[0].Name = "kops-warmpool" }), nodegroup.History{}, "launch-hook-missing", finding.Broken, "lifeboat-launch", "hooks.launch.name: kops-warmpool"},
		"a hook of another transition":      {group(), seen(func(o *nodegroup.Observed) { o.Hooks[0].Terminating = true }), nodegroup.History{}, "launch-hook-elsewhere", finding.Broken, "holds the other transition", "hooks.launch.name"},
		"a launch that goes on":             {group(observing), seen(func(o *nodegroup.Observed) { o.Hooks[0].Abandons = false }), nodegroup.History{}, "launch-hook-continues", finding.Warning, "set-up failed", "--default-result ABANDON"},
		"boots beyond the timeout":          {group(), seen(), boots(700), "launch-hook-too-short", finding.Warning, "11 min 40 s", "hooks.launch.timeoutSeconds: 1080"},
		"boots beyond all patience":         {group(), seen(), boots(1900), "launch-hook-too-short", finding.Broken, "extends a launch to 30 min at most", "hooks.launch.patienceSeconds"},
		"boots beyond what AWS allows":      {group(), seen(func(o *nodegroup.Observed) { o.Hooks[0].Global = 5 * time.Minute }), boots(400), "launch-hook-too-short", finding.Broken, "extends a launch to 5 min at most", "100 times"},
		"boots in time":                     {group(), seen(), boots(500), "", "", "", ""},
		"another hook":                      {group(), seen(func(o *nodegroup.Observed) { o.Hooks = append(o.Hooks, nodegroup.Hook{Name: "db", Timeout: time.Hour}) }), nodegroup.History{}, "other-hook", finding.Warning, "it holds each instance for 60 min", "hooks.launch.name: db"},
		"a hook that notifies another tool": {group(), seen(func(o *nodegroup.Observed) { o.Hooks[1].Target = "arn:aws:sqs:eu-west-1:1:nth" }), nodegroup.History{}, "hook-target", finding.Info, "arn:aws:sqs:eu-west-1:1:nth", "aws-node-termination-handler"},
		"a pool that cannot have any":       {group(declarePool, func(s *v1beta1.NodeGroupSpec) { s.WarmPool.MinSize = 0 }), seen(withPool, func(o *nodegroup.Observed) { o.Pool.Min, o.Desired = 0, 5 }), nodegroup.History{}, "pool-empty", finding.Info, "5 instances are desired, and at most 5 may be prepared", "maxSize"},
		"launches are suspended":            {group(), seen(suspend("Launch", "User suspended at 2026-01-01T00:00:00Z")), nodegroup.History{}, "process-suspended", finding.Broken, "(AWS: User suspended", "resume-processes --auto-scaling-group-name workers --scaling-processes Launch"},
		"AWS has suspended them":            {group(), seen(suspend("Launch", "Administrative suspension")), nodegroup.History{}, "process-suspended", finding.Broken, "is suspended", "because launches failed for a day"},
		"does not balance the zones":        {group(), seen(suspend("AZRebalance", "")), nodegroup.History{}, "process-suspended", finding.Info, "AZRebalance", "resume-processes"},
		"what says nothing is let be":       {group(), seen(suspend("AlarmNotification", "")), nodegroup.History{}, "", "", "", ""},
		"launches fail one after another":   {group(), seen(), nodegroup.History{Failures: 3, LastFailure: "i-9 was abandoned"}, "launches-fail", finding.Broken, "the last 3 launches failed: AWS retries more and more slowly; the last: i-9 was abandoned", "describe-scaling-activities"},
		"two failures may be chance":        {group(), seen(), nodegroup.History{Failures: 2}, "", "", "", ""},
		"what is declared and not changed":  {group(observing), seen(func(o *nodegroup.Observed) { o.Max = 9 }), nodegroup.History{}, "differs", finding.Warning, "MaxSize is 9, declared 5", "management: All"},
		"a pool that is declared alone":     {group(manage(v1beta1.ManageHooks), declarePool), seen(), nodegroup.History{}, "differs", finding.Warning, "PoolState is not set, declared Stopped", "management: All"},
		"all is well":                       {group(), seen(), nodegroup.History{}, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := nodegroup.Diff(nodegroup.Want(tc.group, ""), tc.observed, tc.history)
			if tc.id == "" {
				if len(p.Findings) > 0 {
					t.Errorf("%+v", p.Findings)
				}
				return
			}
			f, ok := find(p, tc.id)
			if !ok || f.Severity != tc.severity || !strings.Contains(f.Problem, tc.problem) || !strings.Contains(f.Fix, tc.fix) {
				t.Errorf("%+v\nwant %s %s: %q, mended by %q", p.Findings, tc.severity, tc.id, tc.problem, tc.fix)
			}
		})
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	kops := func(o *nodegroup.Observed) {
		o.Name = "nodes-eu-west-1a.prod.example.com"
		o.Tags = map[string]string{"kops.k8s.io/instancegroup": "nodes-eu-west-1a"}
		o.Hooks = []nodegroup.Hook{{Name: "kops-warmpool", Abandons: true}, {Name: "nodes-eu-west-1a-NTHLifecycleHook", Terminating: true}}
	}
	spec := func(m v1beta1.Management, change ...func(*v1beta1.NodeGroupSpec)) v1beta1.NodeGroupSpec {
		s := v1beta1.NodeGroupSpec{Management: m, DeletionPolicy: v1beta1.KeepGroup}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	named := func(launch, terminate string) func(*v1beta1.NodeGroupSpec) {
		return func(s *v1beta1.NodeGroupSpec) {
			if launch != "" {
				s.Hooks.Launch = &v1beta1.LifecycleHook{Name: launch}
			}
			if terminate != "" {
				s.Hooks.Terminate = &v1beta1.LifecycleHook{Name: terminate}
			}
		}
	}
	of := func(group string) func(*v1beta1.NodeGroupSpec) {
		return func(s *v1beta1.NodeGroupSpec) { s.AutoScalingGroup = group }
	}
	const longName = "nodes-eu-west-1a.prod.example.com"
	for name, tc := range map[string]struct {
		observed   nodegroup.Observed
		management v1beta1.Management
		object     string
		spec       v1beta1.NodeGroupSpec
		note       string
	}{
		"one that was not read":       {nodegroup.Observed{Name: "My Group/1"}, "", "my-group-1", spec("Observe", of("My Group/1")), ""},
		"with Lifeboat's hooks":       {seen(), "", "workers", spec("Observe"), ""},
		"of kOps":                     {seen(kops), "Hooks", "nodes-eu-west-1a", spec("Hooks", of(longName), named("kops-warmpool", "nodes-eu-west-1a-NTHLifecycleHook")), "aws-node-termination-handler"},
		"of kOps, with another's too": {seen(kops, func(o *nodegroup.Observed) { o.Hooks = append(o.Hooks, nodegroup.Hook{Name: "db"}) }), "", "nodes-eu-west-1a", spec("Observe", of(longName), named("kops-warmpool", "nodes-eu-west-1a-NTHLifecycleHook")), ""},
		"with hooks of which nothing is known": {seen(func(o *nodegroup.Observed) { o.Hooks = []nodegroup.Hook{{Name: "a"}, {Name: "b"}} }), "", "workers", spec("Observe"),
			"put the one that Lifeboat must answer (a, b) into hooks.launch.name"},
		"CodeDeploy's is left to it": {seen(func(o *nodegroup.Observed) {
			o.Hooks = []nodegroup.Hook{{Name: "CodeDeploy-managed-automatic-launch-deployment-hook-x"}}
		}), "", "workers", spec("Observe"), ""},
		"of EKS": {seen(func(o *nodegroup.Observed) {
			o.Operator, o.Tags = "eks.amazonaws.com", map[string]string{"eks:nodegroup-name": "blue"}
		}), "All", "blue", spec("Observe", of("workers")), "belongs to eks.amazonaws.com"},
		"with hooks that were not read": {seen(noHooks, func(o *nodegroup.Observed) { o.HooksKnown = false }), "", "workers", spec("Observe"), "name them in spec.hooks"},
		"whose pool was not read":       {seen(func(o *nodegroup.Observed) { o.PoolKnown = false }), "Hooks", "workers", spec("Hooks"), ""},
		"all of it": {seen(withPool), "All", "workers", spec("All", declarePool, func(s *v1beta1.NodeGroupSpec) {
			s.MinSize, s.MaxSize, s.Subnets = number(1), number(5), []string{"subnet-a", "subnet-b"}
			s.LaunchTemplate, s.CapacityRebalance = &v1beta1.LaunchTemplate{ID: "lt-1", Version: "3"}, new(bool)
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, notes := nodegroup.Adopt(tc.observed, tc.management)
			if diff := cmp.Diff(tc.spec, g.Spec); diff != "" || g.Name != tc.object {
				t.Errorf("named %s, want %s; spec (-want +got):\n%s", g.Name, tc.object, diff)
			}
			if !strings.Contains(strings.Join(notes, "\n"), tc.note) {
				t.Errorf("notes: %v", notes)
			}
			// An adopted group needs no change but a tag.
			if tc.observed.Exists && g.Spec.Management == v1beta1.ManageAll {
				if got := steps(plan(g, tc.observed)); len(got) != 0 {
					t.Errorf("adopted, and to be changed: %v", got)
				}
			}
		})
	}
}
