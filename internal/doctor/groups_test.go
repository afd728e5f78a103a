package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// ofTemplate returns the findings about a template.
func ofTemplate(t *testing.T, name, text string) []string {
	t.Helper()
	s, err := template.Read([]template.File{{Name: name, Data: []byte(text)}}, template.Given{})
	if err != nil {
		t.Fatal(err)
	}
	return brief(doctor.Run(s, awssetup.Desired("", "", ""), doctor.Cluster{}))
}

// templates are templates with their expected findings.
type templates []struct {
	name, file, text string
	want             []string
}

func (all templates) try(t *testing.T) {
	t.Helper()
	for _, tc := range all {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, ofTemplate(t, tc.file, tc.text)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

const (
	tfLaunch = `{"name":"lifeboat-launch","lifecycle_transition":"autoscaling:EC2_INSTANCE_LAUNCHING","default_result":"ABANDON","heartbeat_timeout":600}`
	tfHook   = `"aws_autoscaling_lifecycle_hook":{"l":{"autoscaling_group_name":"${aws_autoscaling_group.g.name}","name":"lifeboat-launch","lifecycle_transition":"autoscaling:EC2_INSTANCE_LAUNCHING","default_result":"ABANDON"}}`
	cfnHook  = `{Type: "AWS::AutoScaling::LifecycleHook", Properties: {AutoScalingGroupName: !Ref Group, LifecycleHookName: lifeboat-launch, LifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING", DefaultResult: ABANDON}}`
	cfnPool  = `Pool: {Type: "AWS::AutoScaling::WarmPool", Properties: {AutoScalingGroupName: !Ref Group}`
)

// A hook that is a separate resource is created after the group's first instances.
func TestRace01InstancesBeforeTheHook(t *testing.T) {
	t.Parallel()
	templates{
		{"Terraform, separate hook", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1}},` + tfHook + `}}`, []string{"warning group-before-hook group nodes"}},
		{"Terraform, in the group", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"initial_lifecycle_hook":[` + tfLaunch + `]}}}}`, []string{}},
		{"Terraform, both", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"initial_lifecycle_hook":` + tfLaunch + `}},` + tfHook + `}}`, []string{}},
		{"Terraform, no instances yet", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":0}},` + tfHook + `}}`, []string{}},
		{"Terraform, existing group", "a.tf.json", `{"resource":{` + strings.Replace(tfHook, "${aws_autoscaling_group.g.name}", "nodes", 1) + `}}`, []string{}},
		{"Terraform, dynamic block of hooks", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"dynamic":{"initial_lifecycle_hook":{"for_each":"${var.hooks}"}}}}}}`, []string{}},
		{"CloudFormation, separate hook", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"1\"}}\n  Hook: " + cfnHook, []string{"warning group-before-hook group Group"}},
		{"CloudFormation, in the group", "a.yaml", `
Resources:
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
    Properties:
      MinSize: "1"
      LifecycleHookSpecificationList:
      - {LifecycleHookName: lifeboat-launch, LifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING", HeartbeatTimeout: 600}`, []string{}},
		{"a group without hooks has no findings", "a.yaml", `{"Resources":{"Group":{"Type":"AWS::AutoScaling::AutoScalingGroup","Properties":{"MinSize":"1"}}}}`, []string{}},
	}.try(t)
}

// A pool that is created with its group, or concurrently with its hook, fills before
// the hook exists. kOps' Terraform does so.
func TestRace02PoolBeforeTheHook(t *testing.T) {
	t.Parallel()
	templates{
		{"Terraform, pool in the group and separate hook", "a.tf.json",
			`{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":0,"warm_pool":{"min_size":2}}},` + tfHook + `}}`, []string{"warning pool-before-hook group nodes"}},
		{"Terraform, no hook", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"warm_pool":[{"min_size":2}]}}}}`, []string{"broken pool-without-hook group nodes"}},
		{"Terraform, a terminate hook only", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"warm_pool":[{}],"initial_lifecycle_hook":` +
			`{"name":"t","lifecycle_transition":"autoscaling:EC2_INSTANCE_TERMINATING","default_result":"CONTINUE"}}}}}`, []string{"broken pool-without-hook group nodes"}},
		{"Terraform, both in the group", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"warm_pool":{},"initial_lifecycle_hook":` + tfLaunch + `}}}}`, []string{}},
		{"terraform show", "plan.json", `{"values":{"root_module":{"resources":[
			{"address":"aws_autoscaling_group.g","values":{"name":"nodes","min_size":1,"warm_pool":[{"min_size":1}],"initial_lifecycle_hook":[]}},
			{"address":"aws_autoscaling_lifecycle_hook.l","values":{"autoscaling_group_name":"nodes","name":"kops-warmpool","lifecycle_transition":"autoscaling:EC2_INSTANCE_LAUNCHING","default_result":"ABANDON","heartbeat_timeout":600}}]}}}`,
			[]string{"warning pool-before-hook group nodes"}},
		{"CloudFormation, no dependency", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"0\"}}\n  Hook: " + cfnHook + "\n  " + cfnPool + "}", []string{"warning pool-before-hook group Group"}},
		{"CloudFormation, the pool depends on the hook", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"0\"}}\n  Hook: " + cfnHook + "\n  " + cfnPool + ", DependsOn: Hook}", []string{}},
		{"CloudFormation, the pool depends on the group", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"0\"}}\n  Hook: " + cfnHook + "\n  " + cfnPool + ", DependsOn: [Group]}", []string{"warning pool-before-hook group Group"}},
	}.try(t)
}

// The default result of a hook is ABANDON.
func TestRace35AbandonChosenByTimeout(t *testing.T) {
	t.Parallel()
	hook := func(transition, also string) string {
		return `{"Resources":{"H":{"Type":"AWS::AutoScaling::LifecycleHook","Properties":{"AutoScalingGroupName":"nodes","LifecycleHookName":"h","LifecycleTransition":"autoscaling:EC2_INSTANCE_` +
			transition + `"` + also + `}}}}`
	}
	retaining := `{"Resources":{"G":{"Type":"AWS::AutoScaling::AutoScalingGroup","Properties":{"AutoScalingGroupName":"nodes","MinSize":"1",` +
		`"InstanceLifecyclePolicy":{"RetentionTriggers":{"TerminateHookAbandon":"retain"}},` +
		`"LifecycleHookSpecificationList":[{"LifecycleHookName":"h","LifecycleTransition":"autoscaling:EC2_INSTANCE_TERMINATING","DefaultResult":"RESULT"}]}}}}`
	templates{
		{"a termination without default result", "a.json", hook("TERMINATING", ""), []string{"warning terminate-hook-abandons hook h of group nodes"}},
		{"a termination that abandons", "a.json", hook("TERMINATING", `,"DefaultResult":"ABANDON"`), []string{"warning terminate-hook-abandons hook h of group nodes"}},
		{"a termination that continues", "a.json", hook("TERMINATING", `,"DefaultResult":"CONTINUE"`), []string{}},
		{"a termination that abandons, with retention", "a.json", strings.Replace(retaining, "RESULT", "ABANDON", 1), []string{}},
		{"a termination that continues, with retention", "a.json", strings.Replace(retaining, "RESULT", "CONTINUE", 1), []string{"warning retains-nothing hook h of group nodes"}},
		{"a launch without default result", "a.json", hook("LAUNCHING", ""), []string{}},
		{"a launch that continues", "a.json", hook("LAUNCHING", `,"DefaultResult":"CONTINUE"`), []string{"warning launch-hook-continues hook h of group nodes"}},
		{"a timeout that is shorter than the polling interval", "a.json", hook("LAUNCHING", `,"HeartbeatTimeout":30`), []string{"warning hook-too-short hook h of group nodes"}},
		{"a FIFO queue", "a.json", hook("LAUNCHING", `,"NotificationTargetARN":"arn:aws:sqs:eu-west-1:210987654321:q.fifo"`), []string{"broken hook-target-fifo hook h of group nodes"}},
	}.try(t)
}

// hooked returns a group of the cluster with both Lifeboat hooks.
func hooked(name string) doctor.Group {
	return doctor.Group{Name: name, Hooks: []doctor.Hook{
		{Name: "lifeboat-launch", Own: true, Timeout: 10 * time.Minute}, {Name: "lifeboat-terminate", Own: true, Terminating: true, Timeout: 5 * time.Minute},
	}}
}

func TestGroupsWithoutRules(t *testing.T) {
	t.Parallel()
	lifecycle := slices.IndexFunc(want.Rules, func(r awssetup.Rule) bool { return r.Role == awssetup.RoleAutoScalingLifecycle })
	limited, err := want.ForGroups([]string{"nodes-a"})
	if err != nil {
		t.Fatal(err)
	}
	const only = `{"source":["aws.autoscaling"],"detail-type":["EC2 Instance-terminate Lifecycle Action"],"detail":{"LifecycleHookName":["lifeboat-terminate"]}}`
	for _, tc := range []struct {
		name    string
		pattern string
		groups  []doctor.Group
		want    []string
	}{
		{"rules for all groups", want.Rules[lifecycle].Pattern, []doctor.Group{hooked("nodes-a"), hooked("nodes-b")}, []string{}},
		{"a group that was added later", limited.Rules[lifecycle].Pattern, []doctor.Group{hooked("nodes-a"), hooked("nodes-b")},
			[]string{"warning group-unheard group nodes-b", "warning group-unheard group nodes-b"}},
		{"no rule for launches", only, []doctor.Group{hooked("nodes-a")}, []string{"warning group-unheard group nodes-a"}},
		{"hooks of others are not expected", limited.Rules[lifecycle].Pattern, []doctor.Group{{Name: "nodes-b", Hooks: []doctor.Hook{{Name: "other"}}}}, []string{}},
		{"a hook whose target is the queue", limited.Rules[lifecycle].Pattern,
			[]doctor.Group{{Name: "nodes-b", Hooks: []doctor.Hook{{Name: "lifeboat-launch", Own: true, Target: want.QueueARN()}}}}, []string{}},
		{"a rule for another hook", strings.Replace(only, "lifeboat-terminate", "other", 1),
			[]doctor.Group{{Name: "a", Hooks: []doctor.Hook{{Name: "lifeboat-terminate", Own: true, Terminating: true}}}}, []string{"warning group-unheard group a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := sound(t)
			s.Rules[lifecycle].Pattern = tc.pattern
			got := brief(doctor.Run(s, want, doctor.Cluster{Groups: tc.groups}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeTerminationHandlerAnswersToo(t *testing.T) {
	t.Parallel()
	const deployment = "deployment kube-system/aws-node-termination-handler"
	own := snapshot.Queue{ARN: "arn:aws:sqs:eu-west-1:210987654321:prod-nth", Name: "prod-nth"}
	notified := hooked("nodes-a")
	notified.Hooks[1].Target = own.ARN
	for _, tc := range []struct {
		name   string
		tool   doctor.Tool
		groups []doctor.Group
		want   []string
	}{
		{"it reads Lifeboat's queue", doctor.Tool{Object: deployment, Queue: "https://sqs/1/lifeboat-prod"}, []doctor.Group{hooked("nodes-a")},
			[]string{"broken nth-same-queue " + deployment, "warning nth-runs " + deployment}},
		{"it reads its own", doctor.Tool{Object: deployment, Queue: "https://sqs/1/prod-nth"}, []doctor.Group{hooked("nodes-a")},
			[]string{"warning nth-runs " + deployment, "warning nth-answers-too " + deployment}},
		{"it reads its own, and no group has a hook", doctor.Tool{Object: deployment, Queue: "https://sqs/1/prod-nth"}, []doctor.Group{{Name: "nodes-a"}},
			[]string{"warning nth-runs " + deployment}},
		{"it reads metadata only", doctor.Tool{Object: "daemonset kube-system/nth"}, []doctor.Group{notified},
			[]string{"warning nth-runs daemonset kube-system/nth"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := doctor.Run(sound(t), want, doctor.Cluster{NTH: &tc.tool, Groups: tc.groups})
			if diff := cmp.Diff(tc.want, brief(all)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
