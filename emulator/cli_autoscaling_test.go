//go:build e2e

package emulator_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// prepareAutoScaling creates a group with an instance that a hook holds and one in service, and a
// launch template for groups that launch instances.
func prepareAutoScaling(t *testing.T, s *emulator.States) map[string]string {
	t.Helper()
	made, err := s.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 2, Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	_, templateErr := s.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil)
	for _, err := range []error{
		s.AutoScaling.CreateGroup(autoscaling.Group{Name: "g", Max: 3, Tags: map[string]string{"team": "a"}, WarmPool: &autoscaling.WarmPool{}}),
		templateErr,
		s.AutoScaling.Attach("g", id, autoscaling.InService),
		s.AutoScaling.Attach("g", made[1].ID, autoscaling.InService),
		s.AutoScaling.PutHook(autoscaling.Hook{Name: "drain", Group: "g", Transition: autoscaling.Leaving}),
		s.AutoScaling.Send(id, autoscaling.ScaleIn, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"ID": id, "SERVING": made[1].ID, "TOKEN": s.AutoScaling.Actions(id)[0].Token}
}

var autoscalingCLICases = []cliCase{
	{name: "describe a group", args: []string{"autoscaling", "describe-auto-scaling-groups", "--filters", "Name=tag:team,Values=a"},
		want: map[string]string{"AutoScalingGroups.0.AutoScalingGroupName": "g", "AutoScalingGroups.0.MaxSize": "3", "AutoScalingGroups.1": "",
			"AutoScalingGroups.0.Instances.0.LifecycleState": "Terminating:Wait", "AutoScalingGroups.0.CreatedTime": "*"}},
	{name: "describe an instance", args: []string{"autoscaling", "describe-auto-scaling-instances", "--instance-ids", "$ID"},
		want: map[string]string{"AutoScalingInstances.0.LifecycleState": "Terminating:Wait", "AutoScalingInstances.0.HealthStatus": "HEALTHY"}},
	{name: "describe its hooks", args: []string{"autoscaling", "describe-lifecycle-hooks", "--auto-scaling-group-name", "g"},
		want: map[string]string{"LifecycleHooks.0.LifecycleHookName": "drain", "LifecycleHooks.0.HeartbeatTimeout": "3600"}},
	{name: "describe its warm pool", args: []string{"autoscaling", "describe-warm-pool", "--auto-scaling-group-name", "g"},
		want: map[string]string{"WarmPoolConfiguration.PoolState": "Stopped", "Instances.0": ""}},
	{name: "describe the hooks of none", args: []string{"autoscaling", "describe-lifecycle-hooks", "--auto-scaling-group-name", "none"}, wantErr: "ValidationError"},
	{name: "ask for more time", args: []string{"autoscaling", "record-lifecycle-action-heartbeat", "--auto-scaling-group-name", "g",
		"--lifecycle-hook-name", "drain", "--instance-id", "$ID"}},
	{name: "answer", args: []string{"autoscaling", "complete-lifecycle-action", "--auto-scaling-group-name", "g",
		"--lifecycle-hook-name", "drain", "--lifecycle-action-token", "$TOKEN", "--lifecycle-action-result", "CONTINUE"}},
	{name: "answer again", args: []string{"autoscaling", "complete-lifecycle-action", "--auto-scaling-group-name", "g",
		"--lifecycle-hook-name", "drain", "--lifecycle-action-token", "$TOKEN", "--lifecycle-action-result", "CONTINUE"}, wantErr: "ValidationError"},
	{name: "move one to standby", args: []string{"autoscaling", "enter-standby", "--auto-scaling-group-name", "g", "--instance-ids", "$SERVING",
		"--no-should-decrement-desired-capacity"}, want: map[string]string{"Activities.0.Description": "Moving EC2 instance to Standby: $SERVING", "Activities.0.StartTime": "*"}},
	{name: "detach it", args: []string{"autoscaling", "detach-instances", "--auto-scaling-group-name", "g", "--instance-ids", "$SERVING",
		"--no-should-decrement-desired-capacity"}, want: map[string]string{"Activities.0.AutoScalingGroupName": "g"}},
	{name: "create a group", args: []string{"autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", "live", "--min-size", "0", "--max-size", "4",
		"--desired-capacity", "1", "--launch-template", "LaunchTemplateName=workers,Version=$Latest", "--availability-zones", "us-east-1a", "us-east-1b",
		"--tags", "Key=team,Value=a,PropagateAtLaunch=true", "--lifecycle-hook-specification-list",
		"LifecycleHookName=up,LifecycleTransition=autoscaling:EC2_INSTANCE_LAUNCHING,HeartbeatTimeout=7200,DefaultResult=ABANDON"}},
	{name: "create it again", args: []string{"autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", "live", "--min-size", "0", "--max-size", "4",
		"--launch-template", "LaunchTemplateName=workers", "--availability-zones", "us-east-1a"}, wantErr: "AlreadyExists"},
	{name: "put a hook", args: []string{"autoscaling", "put-lifecycle-hook", "--auto-scaling-group-name", "live", "--lifecycle-hook-name", "down",
		"--lifecycle-transition", "autoscaling:EC2_INSTANCE_TERMINATING", "--heartbeat-timeout", "60"}},
	{name: "put a warm pool", args: []string{"autoscaling", "put-warm-pool", "--auto-scaling-group-name", "live", "--max-group-prepared-capacity", "2",
		"--pool-state", "Hibernated", "--instance-reuse-policy", "ReuseOnScaleIn=true"}},
	{name: "see its instance held", args: []string{"autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", "live"},
		save: map[string]string{"HELD": "AutoScalingGroups.0.Instances.0.InstanceId"},
		want: map[string]string{"AutoScalingGroups.0.Instances.0.LifecycleState": "Pending:Wait", "AutoScalingGroups.0.WarmPoolConfiguration.PoolState": "Hibernated",
			"AutoScalingGroups.0.LaunchTemplate.Version": "$Latest", "AutoScalingGroups.0.Instances.0.LaunchTemplate.Version": "1", "AutoScalingGroups.0.WarmPoolSize": "1"}},
	{name: "see what goes on", args: []string{"autoscaling", "describe-scaling-activities", "--auto-scaling-group-name", "live"},
		want: map[string]string{"Activities.0.StatusCode": "*", "Activities.0.Cause": "*", "Activities.0.EndTime": ""}},
	{name: "suspend", args: []string{"autoscaling", "suspend-processes", "--auto-scaling-group-name", "live", "--scaling-processes", "Launch"}},
	{name: "ask for too many", args: []string{"autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "live", "--desired-capacity", "5"}, wantErr: "ValidationError"},
	{name: "update it", args: []string{"autoscaling", "update-auto-scaling-group", "--auto-scaling-group-name", "live", "--max-size", "6", "--capacity-rebalance"}},
	{name: "tag it", args: []string{"autoscaling", "create-or-update-tags", "--tags", "ResourceId=live,ResourceType=auto-scaling-group,Key=team,Value=b,PropagateAtLaunch=false"}},
	{name: "read its tags", args: []string{"autoscaling", "describe-tags", "--filters", "Name=auto-scaling-group,Values=live"},
		want: map[string]string{"Tags.0.Value": "b", "Tags.0.PropagateAtLaunch": "false", "Tags.1": ""}},
	{name: "refresh it", args: []string{"autoscaling", "start-instance-refresh", "--auto-scaling-group-name", "live", "--preferences", "MinHealthyPercentage=50"},
		save: map[string]string{"REFRESH": "InstanceRefreshId"}, want: map[string]string{"InstanceRefreshId": "*"}},
	{name: "read its refreshes", args: []string{"autoscaling", "describe-instance-refreshes", "--auto-scaling-group-name", "live"},
		want: map[string]string{"InstanceRefreshes.0.InstanceRefreshId": "$REFRESH", "InstanceRefreshes.0.Status": "InProgress"}},
	{name: "terminate through it", args: []string{"autoscaling", "terminate-instance-in-auto-scaling-group", "--instance-id", "$HELD",
		"--should-decrement-desired-capacity"}, want: map[string]string{"Activity.Description": "Terminating EC2 instance: $HELD", "Activity.Progress": "*"}},
	{name: "delete it too early", args: []string{"autoscaling", "delete-auto-scaling-group", "--auto-scaling-group-name", "live"}, wantErr: "ResourceInUse"},
	{name: "delete its hook", args: []string{"autoscaling", "delete-lifecycle-hook", "--auto-scaling-group-name", "live", "--lifecycle-hook-name", "down"}},
	{name: "delete it", args: []string{"autoscaling", "delete-auto-scaling-group", "--auto-scaling-group-name", "live", "--force-delete"}},
}
