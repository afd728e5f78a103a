package awsemu_test

import (
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
)

// prepareAutoScaling makes a group with an instance that a hook holds.
func prepareAutoScaling(t *testing.T, s *awsemu.States) map[string]string {
	t.Helper()
	made, err := s.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := made[0].ID
	for _, err := range []error{
		s.AutoScaling.CreateGroup(autoscaling.Group{Name: "g", Max: 3, Tags: map[string]string{"team": "a"}, WarmPool: &autoscaling.WarmPool{}}),
		s.AutoScaling.Attach("g", id, autoscaling.InService),
		s.AutoScaling.PutHook(autoscaling.Hook{Name: "drain", Group: "g", Transition: autoscaling.Leaving}),
		s.AutoScaling.Send(id, autoscaling.ScaleIn, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"ID": id, "TOKEN": s.AutoScaling.Actions(id)[0].Token}
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
}
