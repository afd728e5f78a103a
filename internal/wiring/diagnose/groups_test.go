package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/template"
)

// template is how the doctor sees a template.
func ofTemplate(t *testing.T, name, text string) []string {
	t.Helper()
	s, err := template.Read([]template.File{{Name: name, Data: []byte(text)}}, template.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return brief(diagnose.Run(s, wiring.Wanted("", "", ""), diagnose.Cluster{}))
}

// templates are groups as they are written, with what the doctor finds.
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

// A hook that is a resource of its own comes after what its group launches first.
func TestRace01InstancesBeforeTheHook(t *testing.T) {
	t.Parallel()
	templates{
		{"Terraform, apart", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1}},` + tfHook + `}}`, []string{"warning group-before-hook group nodes"}},
		{"Terraform, in the group", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"initial_lifecycle_hook":[` + tfLaunch + `]}}}}`, []string{}},
		{"Terraform, both", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"initial_lifecycle_hook":` + tfLaunch + `}},` + tfHook + `}}`, []string{}},
		{"Terraform, nothing is launched yet", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":0}},` + tfHook + `}}`, []string{}},
		{"Terraform, of a group that is there", "a.tf.json", `{"resource":{` + strings.Replace(tfHook, "${aws_autoscaling_group.g.name}", "nodes", 1) + `}}`, []string{}},
		{"Terraform, as its own template of hooks", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"dynamic":{"initial_lifecycle_hook":{"for_each":"${var.hooks}"}}}}}}`, []string{}},
		{"CloudFormation, apart", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"1\"}}\n  Hook: " + cfnHook, []string{"warning group-before-hook group Group"}},
		{"CloudFormation, in the group", "a.yaml", `
Resources:
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
    Properties:
      MinSize: "1"
      LifecycleHookSpecificationList:
      - {LifecycleHookName: lifeboat-launch, LifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING", HeartbeatTimeout: 600}`, []string{}},
		{"a group with no hooks is none of Lifeboat's", "a.yaml", `{"Resources":{"Group":{"Type":"AWS::AutoScaling::AutoScalingGroup","Properties":{"MinSize":"1"}}}}`, []string{}},
	}.try(t)
}

// A pool that is made with its group, or beside its hook, fills before the hook is
// there: kOps' Terraform is so.
func TestRace02PoolBeforeTheHook(t *testing.T) {
	t.Parallel()
	templates{
		{"Terraform, the pool is in the group and the hook is apart", "a.tf.json",
			`{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":0,"warm_pool":{"min_size":2}}},` + tfHook + `}}`, []string{"warning pool-before-hook group nodes"}},
		{"Terraform, no hook", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"warm_pool":[{"min_size":2}]}}}}`, []string{"broken pool-without-hook group nodes"}},
		{"Terraform, a terminate hook only", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"warm_pool":[{}],"initial_lifecycle_hook":` +
			`{"name":"t","lifecycle_transition":"autoscaling:EC2_INSTANCE_TERMINATING","default_result":"CONTINUE"}}}}}`, []string{"broken pool-without-hook group nodes"}},
		{"Terraform, both in the group", "a.tf.json", `{"resource":{"aws_autoscaling_group":{"g":{"name":"nodes","min_size":1,"warm_pool":{},"initial_lifecycle_hook":` + tfLaunch + `}}}}`, []string{}},
		{"what terraform show prints", "plan.json", `{"values":{"root_module":{"resources":[
			{"address":"aws_autoscaling_group.g","values":{"name":"nodes","min_size":1,"warm_pool":[{"min_size":1}],"initial_lifecycle_hook":[]}},
			{"address":"aws_autoscaling_lifecycle_hook.l","values":{"autoscaling_group_name":"nodes","name":"kops-warmpool","lifecycle_transition":"autoscaling:EC2_INSTANCE_LAUNCHING","default_result":"ABANDON","heartbeat_timeout":600}}]}}}`,
			[]string{"warning pool-before-hook group nodes"}},
		{"CloudFormation, side by side", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"0\"}}\n  Hook: " + cfnHook + "\n  " + cfnPool + "}", []string{"warning pool-before-hook group Group"}},
		{"CloudFormation, the pool waits", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"0\"}}\n  Hook: " + cfnHook + "\n  " + cfnPool + ", DependsOn: Hook}", []string{}},
		{"CloudFormation, the pool waits for something else", "a.yaml", "Resources:\n  Group: {Type: \"AWS::AutoScaling::AutoScalingGroup\", Properties: {MinSize: \"0\"}}\n  Hook: " + cfnHook + "\n  " + cfnPool + ", DependsOn: [Group]}", []string{"warning pool-before-hook group Group"}},
	}.try(t)
}

// What a hook's time running out means is ABANDON unless somebody says CONTINUE.
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
		{"a termination, and nothing is said", "a.json", hook("TERMINATING", ""), []string{"warning terminate-hook-abandons hook h of group nodes"}},
		{"a termination that abandons", "a.json", hook("TERMINATING", `,"DefaultResult":"ABANDON"`), []string{"warning terminate-hook-abandons hook h of group nodes"}},
		{"a termination that goes on", "a.json", hook("TERMINATING", `,"DefaultResult":"CONTINUE"`), []string{}},
		{"a termination that abandons, and is kept", "a.json", strings.Replace(retaining, "RESULT", "ABANDON", 1), []string{}},
		{"a termination that goes on, where it would be kept", "a.json", strings.Replace(retaining, "RESULT", "CONTINUE", 1), []string{"warning retains-nothing hook h of group nodes"}},
		{"a launch, and nothing is said", "a.json", hook("LAUNCHING", ""), []string{}},
		{"a launch that goes on", "a.json", hook("LAUNCHING", `,"DefaultResult":"CONTINUE"`), []string{"warning launch-hook-continues hook h of group nodes"}},
		{"a timeout that is over before anybody looks", "a.json", hook("LAUNCHING", `,"HeartbeatTimeout":30`), []string{"warning hook-too-short hook h of group nodes"}},
		{"a FIFO queue", "a.json", hook("LAUNCHING", `,"NotificationTargetARN":"arn:aws:sqs:eu-west-1:210987654321:q.fifo"`), []string{"broken hook-target-fifo hook h of group nodes"}},
	}.try(t)
}

// hooked is a group of the cluster with the two hooks of Lifeboat's.
func hooked(name string) diagnose.Group {
	return diagnose.Group{Name: name, Hooks: []diagnose.Hook{
		{Name: "lifeboat-launch", Own: true, Timeout: 10 * time.Minute}, {Name: "lifeboat-terminate", Own: true, Terminating: true, Timeout: 5 * time.Minute},
	}}
}

func TestGroupsThatAreNotHeard(t *testing.T) {
	t.Parallel()
	lifecycle := slices.IndexFunc(want.Rules, func(r wiring.Rule) bool { return r.Role == wiring.RoleAutoScalingLifecycle })
	limited, err := want.ForGroups([]string{"nodes-a"})
	if err != nil {
		t.Fatal(err)
	}
	const only = `{"source":["aws.autoscaling"],"detail-type":["EC2 Instance-terminate Lifecycle Action"],"detail":{"LifecycleHookName":["lifeboat-terminate"]}}`
	for _, tc := range []struct {
		name    string
		pattern string
		groups  []diagnose.Group
		want    []string
	}{
		{"every group is heard", want.Rules[lifecycle].Pattern, []diagnose.Group{hooked("nodes-a"), hooked("nodes-b")}, []string{}},
		{"one that came later", limited.Rules[lifecycle].Pattern, []diagnose.Group{hooked("nodes-a"), hooked("nodes-b")},
			[]string{"warning group-unheard group nodes-b", "warning group-unheard group nodes-b"}},
		{"launches are not", only, []diagnose.Group{hooked("nodes-a")}, []string{"warning group-unheard group nodes-a"}},
		{"hooks of others are not expected", limited.Rules[lifecycle].Pattern, []diagnose.Group{{Name: "nodes-b", Hooks: []diagnose.Hook{{Name: "other"}}}}, []string{}},
		{"a hook that tells the queue itself", limited.Rules[lifecycle].Pattern,
			[]diagnose.Group{{Name: "nodes-b", Hooks: []diagnose.Hook{{Name: "lifeboat-launch", Own: true, Target: want.QueueARN()}}}}, []string{}},
		{"a hook of another name", strings.Replace(only, "lifeboat-terminate", "other", 1),
			[]diagnose.Group{{Name: "a", Hooks: []diagnose.Hook{{Name: "lifeboat-terminate", Own: true, Terminating: true}}}}, []string{"warning group-unheard group a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := sound(t)
			s.Rules[lifecycle].Pattern = tc.pattern
			got := brief(diagnose.Run(s, want, diagnose.Cluster{Groups: tc.groups}))
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
	told := hooked("nodes-a")
	told.Hooks[1].Target = own.ARN
	for _, tc := range []struct {
		name   string
		tool   diagnose.Tool
		groups []diagnose.Group
		want   []string
	}{
		{"it reads Lifeboat's queue", diagnose.Tool{Object: deployment, Queue: "https://sqs/1/lifeboat-prod"}, []diagnose.Group{hooked("nodes-a")},
			[]string{"broken nth-same-queue " + deployment, "warning nth-runs " + deployment}},
		{"it reads its own", diagnose.Tool{Object: deployment, Queue: "https://sqs/1/prod-nth"}, []diagnose.Group{hooked("nodes-a")},
			[]string{"warning nth-runs " + deployment, "warning nth-answers-too " + deployment}},
		{"it reads its own, and no group has a hook", diagnose.Tool{Object: deployment, Queue: "https://sqs/1/prod-nth"}, []diagnose.Group{{Name: "nodes-a"}},
			[]string{"warning nth-runs " + deployment}},
		{"it reads metadata only", diagnose.Tool{Object: "daemonset kube-system/nth"}, []diagnose.Group{told},
			[]string{"warning nth-runs daemonset kube-system/nth"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := diagnose.Run(sound(t), want, diagnose.Cluster{NTH: &tc.tool, Groups: tc.groups})
			if diff := cmp.Diff(tc.want, brief(all)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
