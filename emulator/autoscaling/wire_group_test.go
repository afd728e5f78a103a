package autoscaling_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// newGroups is an account with a launch template named workers, whose groups react fast.
func newGroups(t *testing.T) *account {
	t.Helper()
	a := newAccount(t)
	a.States.AutoScaling.SetTiming(autoscaling.Timing{Evaluate: time.Millisecond, Launch: time.Millisecond, Settle: time.Millisecond})
	must(a.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil))(t)
	return a
}

// create is the request for a group that launches workers in one zone.
func create(name string, least, most int32) *sdk.CreateAutoScalingGroupInput {
	return &sdk.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name, MinSize: &least, MaxSize: &most, AvailabilityZones: []string{"eu-west-1a"},
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("workers"), Version: aws.String("$Latest")},
	}
}

// group is a group as the SDK sees it.
func (a *account) group(t *testing.T, name string) types.AutoScalingGroup {
	t.Helper()
	out := must(a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}}))(t)
	if len(out.AutoScalingGroups) == 0 {
		return types.AutoScalingGroup{}
	}
	return out.AutoScalingGroups[0]
}

// reach waits until a group has n instances in a state, and returns their ids.
func (a *account) reach(t *testing.T, group string, n int, state types.LifecycleState) []string {
	t.Helper()
	var ids []string
	eventually(t, string(state), func() bool {
		ids = nil
		for _, in := range a.group(t, group).Instances {
			if in.LifecycleState == state {
				ids = append(ids, *in.InstanceId)
			}
		}
		return len(ids) == n
	})
	return ids
}

func hookSpec(name, transition string) types.LifecycleHookSpecification {
	return types.LifecycleHookSpecification{
		LifecycleHookName: &name, LifecycleTransition: &transition, DefaultResult: aws.String("CONTINUE"), HeartbeatTimeout: aws.Int32(60),
	}
}

func TestSDKCreatesGroup(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	subnets := a.States.EC2.Subnets()
	in := create("workers-a", 1, 5)
	in.AvailabilityZones, in.VPCZoneIdentifier = nil, aws.String(subnets[0].ID+","+subnets[1].ID)
	in.DesiredCapacity = aws.Int32(2)
	in.Tags = []types.Tag{{Key: aws.String("team"), Value: aws.String("x"), PropagateAtLaunch: aws.Bool(true)}, {Key: aws.String("own"), Value: aws.String("y")}}
	in.LifecycleHookSpecificationList = []types.LifecycleHookSpecification{
		hookSpec("up", "autoscaling:EC2_INSTANCE_LAUNCHING"), hookSpec("down", "autoscaling:EC2_INSTANCE_TERMINATING"),
	}
	in.NewInstancesProtectedFromScaleIn, in.CapacityRebalance, in.HealthCheckGracePeriod = aws.Bool(true), aws.Bool(true), aws.Int32(30)
	in.InstanceLifecyclePolicy = &types.InstanceLifecyclePolicy{RetentionTriggers: &types.RetentionTriggers{TerminateHookAbandon: types.RetentionActionRetain}}
	in.TerminationPolicies = []string{"OldestInstance"}
	must(a.sdk.CreateAutoScalingGroup(t.Context(), in))(t)
	_, err := a.sdk.CreateAutoScalingGroup(t.Context(), in)
	wantError(t, err, "AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name workers-a already exists")

	ids := a.reach(t, "workers-a", 2, types.LifecycleStatePendingWait)
	for _, id := range ids {
		must(a.sdk.CompleteLifecycleAction(t.Context(), complete("workers-a", "up", id, "")))(t)
	}
	a.reach(t, "workers-a", 2, types.LifecycleStateInService)
	g := a.group(t, "workers-a")
	template := a.States.EC2.Templates()[0]
	same(t, "group", []any{*g.MinSize, *g.MaxSize, *g.DesiredCapacity, *g.VPCZoneIdentifier, g.AvailabilityZones, *g.HealthCheckGracePeriod, *g.CapacityRebalance,
		*g.NewInstancesProtectedFromScaleIn, g.InstanceLifecyclePolicy.RetentionTriggers.TerminateHookAbandon, g.TerminationPolicies,
		*g.LaunchTemplate.LaunchTemplateId, *g.LaunchTemplate.LaunchTemplateName, *g.LaunchTemplate.Version},
		[]any{int32(1), int32(5), int32(2), *in.VPCZoneIdentifier, []string{"eu-west-1a", "eu-west-1b"}, int32(30), true, true, types.RetentionActionRetain,
			[]string{"OldestInstance"}, template.ID, "workers", "$Latest"})
	same(t, "tags", []any{*g.Tags[0].Key, *g.Tags[0].PropagateAtLaunch, *g.Tags[1].Key, *g.Tags[1].PropagateAtLaunch}, []any{"own", false, "team", true})
	one := g.Instances[0]
	same(t, "instance", []any{*one.LaunchTemplate.LaunchTemplateId, *one.LaunchTemplate.Version, *one.InstanceType, *one.ImageId, *one.ProtectedFromScaleIn, *one.HealthStatus},
		[]any{template.ID, "1", "m5.large", "ami-0abc", true, "Healthy"})
	instance, _ := a.States.EC2.Instance(ids[0])
	same(t, "tags of an instance", []string{instance.Tags["team"], instance.Tags["own"], instance.Tags["aws:autoscaling:groupName"]}, []string{"x", "", "workers-a"})
	bare := must(a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{IncludeInstances: aws.Bool(false)}))(t)
	same(t, "without instances", len(bare.AutoScalingGroups[0].Instances), 0)

	must(a.sdk.PutWarmPool(t.Context(), &sdk.PutWarmPoolInput{AutoScalingGroupName: g.AutoScalingGroupName, MinSize: aws.Int32(1), MaxGroupPreparedCapacity: aws.Int32(2)}))(t)
	var warm types.Instance
	eventually(t, "a warm instance", func() bool {
		pool := must(a.sdk.DescribeWarmPool(t.Context(), &sdk.DescribeWarmPoolInput{AutoScalingGroupName: g.AutoScalingGroupName}))(t)
		if len(pool.Instances) == 1 {
			warm = pool.Instances[0]
		}
		return warm.LifecycleState == types.LifecycleStateWarmedPendingWait
	})
	must(a.sdk.CompleteLifecycleAction(t.Context(), complete("workers-a", "up", *warm.InstanceId, "")))(t)
	eventually(t, "stopped", func() bool { return a.state(t, *warm.InstanceId) == "Warmed:Stopped" })
	must(a.sdk.SetDesiredCapacity(t.Context(), &sdk.SetDesiredCapacityInput{AutoScalingGroupName: g.AutoScalingGroupName, DesiredCapacity: aws.Int32(3)}))(t)
	same(t, "the warm one comes", a.reach(t, "workers-a", 1, types.LifecycleStatePendingWait), []string{*warm.InstanceId})
}

func TestSDKRejectsInvalidGroups(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	for _, tc := range []struct {
		name   string
		change func(*sdk.CreateAutoScalingGroupInput)
		want   string
	}{
		{"no template", func(in *sdk.CreateAutoScalingGroupInput) { in.LaunchTemplate = nil },
			"Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter."},
		{"no place", func(in *sdk.CreateAutoScalingGroupInput) { in.AvailabilityZones = nil }, "At least one Availability Zone or VPC Subnet is required."},
		{"bounds", func(in *sdk.CreateAutoScalingGroupInput) { in.MinSize = aws.Int32(3) }, "Max bound, 2, must be greater than or equal to min bound, 3"},
		{"desired", func(in *sdk.CreateAutoScalingGroupInput) { in.DesiredCapacity = aws.Int32(3) },
			"Desired capacity:3 must be between the specified min size:0 and max size:2"},
		{"unknown template", func(in *sdk.CreateAutoScalingGroupInput) {
			in.LaunchTemplate.LaunchTemplateName, in.LaunchTemplate.LaunchTemplateId = nil, aws.String("lt-0123456789abcdef0")
		}, "You must use a valid fully-formed launch template. The specified launch template, with template ID lt-0123456789abcdef0, does not exist."},
		{"unknown zone", func(in *sdk.CreateAutoScalingGroupInput) { in.AvailabilityZones = []string{"eu-west-1z"} }, "Invalid availability zones: [eu-west-1z]"},
		{"unknown subnet", func(in *sdk.CreateAutoScalingGroupInput) { in.VPCZoneIdentifier = aws.String("subnet-1") }, "The subnet ID 'subnet-1' does not exist"},
		{"a hook too short", func(in *sdk.CreateAutoScalingGroupInput) {
			in.LifecycleHookSpecificationList = []types.LifecycleHookSpecification{hookSpec("up", "autoscaling:EC2_INSTANCE_LAUNCHING")}
			in.LifecycleHookSpecificationList[0].HeartbeatTimeout = aws.Int32(29)
		}, "1 validation error detected: Value '29' at 'heartbeatTimeout' failed to satisfy constraint: Member must have value between 30 and 7200"},
		{"a launch configuration", func(in *sdk.CreateAutoScalingGroupInput) { in.LaunchConfigurationName = aws.String("x") },
			"This emulator supports neither InstanceId nor LaunchConfigurationName: use LaunchTemplate or MixedInstancesPolicy."},
		{"weights", func(in *sdk.CreateAutoScalingGroupInput) {
			in.MixedInstancesPolicy = &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
				LaunchTemplateSpecification: in.LaunchTemplate, Overrides: []types.LaunchTemplateOverrides{{WeightedCapacity: aws.String("2")}},
			}}
			in.LaunchTemplate = nil
		}, "This emulator supports neither WeightedCapacity nor InstanceRequirements: name instance types."},
	} {
		in := create("g", 0, 2)
		tc.change(in)
		_, err := a.sdk.CreateAutoScalingGroup(t.Context(), in)
		t.Run(tc.name, func(t *testing.T) { wantError(t, err, "ValidationError", tc.want) })
	}
	same(t, "group", a.group(t, "g").AutoScalingGroupName, (*string)(nil))
}

func TestSDKWorksWhileGroupExceedsQuota(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	leave(t, a.States.EC2, 300)
	must(a.sdk.CreateAutoScalingGroup(t.Context(), create("workers-a", 0, 2)))(t)
	must(a.sdk.UpdateAutoScalingGroup(t.Context(), &sdk.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("workers-a"), MaxSize: aws.Int32(100_000), DesiredCapacity: aws.Int32(100_000),
	}))(t)
	for n := 0; n < ec2.MostInstances; n = len(a.States.EC2.Instances()) {
		group := a.group(t, "workers-a")
		same(t, "desired", *group.DesiredCapacity, int32(100_000))
	}
	var failed types.Activity
	eventually(t, "a launch that failed", func() bool {
		out := must(a.sdk.DescribeScalingActivities(t.Context(), &sdk.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String("workers-a")}))(t)
		failed = out.Activities[0]
		return failed.StatusCode == types.ScalingActivityStatusCodeFailed
	})
	same(t, "why", *failed.StatusMessage, "You have requested more vCPU capacity than your current vCPU limit of 10000 allows for the instance bucket that the "+
		"specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. "+
		"Launching EC2 instance failed.")
	same(t, "instances", len(a.States.EC2.Instances()), ec2.MostInstances)
}
