package autoscaling_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// made creates a group of n instances, waits for them and returns their ids.
func (a *account) made(t *testing.T, n, most int32) []string {
	t.Helper()
	in := create("g", 0, most)
	in.DesiredCapacity = &n
	must(a.sdk.CreateAutoScalingGroup(t.Context(), in))(t)
	return a.reach(t, "g", int(n), types.LifecycleStateInService)
}

var g = aws.String("g")

func TestSDKMovesInstances(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	ids := a.made(t, 3, 4)
	standby := must(a.sdk.EnterStandby(t.Context(), &sdk.EnterStandbyInput{AutoScalingGroupName: g, InstanceIds: ids[:1], ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	same(t, "activity", []string{*standby.Activities[0].Description, *standby.Activities[0].AutoScalingGroupName}, []string{"Moving EC2 instance to Standby: " + ids[0], "g"})
	a.reach(t, "g", 1, types.LifecycleStateStandby)
	must(a.sdk.ExitStandby(t.Context(), &sdk.ExitStandbyInput{AutoScalingGroupName: g, InstanceIds: ids[:1]}))(t)
	a.reach(t, "g", 3, types.LifecycleStateInService)

	detached := must(a.sdk.DetachInstances(t.Context(), &sdk.DetachInstancesInput{AutoScalingGroupName: g, InstanceIds: ids[:1], ShouldDecrementDesiredCapacity: aws.Bool(false)}))(t)
	same(t, "activity", *detached.Activities[0].Description, "Detaching EC2 instance: "+ids[0])
	eventually(t, "detached and replaced", func() bool {
		list := a.reach(t, "g", 3, types.LifecycleStateInService)
		return !slices.Contains(list, ids[0]) && a.state(t, ids[0]) == ""
	})
	must(a.sdk.AttachInstances(t.Context(), &sdk.AttachInstancesInput{AutoScalingGroupName: g, InstanceIds: ids[:1]}))(t)
	a.reach(t, "g", 4, types.LifecycleStateInService)

	must(a.sdk.SetInstanceProtection(t.Context(), &sdk.SetInstanceProtectionInput{AutoScalingGroupName: g, InstanceIds: ids[:2], ProtectedFromScaleIn: aws.Bool(true)}))(t)
	must(a.sdk.UpdateAutoScalingGroup(t.Context(), &sdk.UpdateAutoScalingGroupInput{AutoScalingGroupName: g, MaxSize: aws.Int32(1)}))(t)
	eventually(t, "the protected ones are left", func() bool {
		var left []string
		for _, in := range a.group(t, "g").Instances {
			left = append(left, *in.InstanceId)
		}
		slices.Sort(left)
		return slices.Equal(left, slices.Sorted(slices.Values(ids[:2])))
	})

	one := must(a.sdk.TerminateInstanceInAutoScalingGroup(t.Context(), &sdk.TerminateInstanceInAutoScalingGroupInput{InstanceId: &ids[0], ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	same(t, "one", []any{*one.Activity.Description, one.Activity.StatusCode, len(one.Activities)}, []any{"Terminating EC2 instance: " + ids[0], types.ScalingActivityStatusCodeInProgress, 0})
	several := must(a.sdk.TerminateInstanceInAutoScalingGroup(t.Context(), &sdk.TerminateInstanceInAutoScalingGroupInput{
		AutoScalingGroupName: g, InstanceIds: ids[1:2], ShouldDecrementDesiredCapacity: aws.Bool(false),
	}))(t)
	same(t, "several", []any{several.Activity, len(several.Activities)}, []any{(*types.Activity)(nil), 1})
	eventually(t, "empty", func() bool { return len(a.group(t, "g").Instances) == 0 })
	log := must(a.sdk.DescribeScalingActivities(t.Context(), &sdk.DescribeScalingActivitiesInput{AutoScalingGroupName: g, MaxRecords: aws.Int32(100)}))(t)
	last := log.Activities[0]
	same(t, "activities", []any{last.StatusCode, *last.Progress, last.EndTime != nil, strings.HasPrefix(*last.Cause, "At 2")}, []any{types.ScalingActivityStatusCodeSuccessful, int32(100), true, true})
	must(a.sdk.DeleteAutoScalingGroup(t.Context(), &sdk.DeleteAutoScalingGroupInput{AutoScalingGroupName: g}))(t)
	same(t, "deleted", a.group(t, "g").AutoScalingGroupName, (*string)(nil))
}

func TestSDKRuns(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	a.made(t, 1, 5)
	must(a.sdk.SuspendProcesses(t.Context(), &sdk.SuspendProcessesInput{AutoScalingGroupName: g, ScalingProcesses: []string{"Launch", "AZRebalance"}}))(t)
	suspended := a.group(t, "g").SuspendedProcesses
	same(t, "suspended", []string{*suspended[0].ProcessName, *suspended[1].ProcessName}, []string{"AZRebalance", "Launch"})
	must(a.sdk.ResumeProcesses(t.Context(), &sdk.ResumeProcessesInput{AutoScalingGroupName: g}))(t)
	same(t, "resumed", len(a.group(t, "g").SuspendedProcesses), 0)

	launched := must(a.sdk.LaunchInstances(t.Context(), &sdk.LaunchInstancesInput{AutoScalingGroupName: g, ClientToken: aws.String("t"), RequestedCapacity: aws.Int32(2)}))(t)
	same(t, "launched", []any{len(launched.Instances), *launched.Instances[0].AvailabilityZone, *launched.Instances[0].MarketType, len(launched.Errors)}, []any{2, "eu-west-1a", "OnDemand", 0})
	ids := a.reach(t, "g", 3, types.LifecycleStateInService)
	must(a.sdk.SetInstanceHealth(t.Context(), &sdk.SetInstanceHealthInput{InstanceId: &ids[0], HealthStatus: aws.String("Unhealthy"), ShouldRespectGracePeriod: aws.Bool(false)}))(t)
	eventually(t, "replaced", func() bool { return !slices.Contains(a.reach(t, "g", 3, types.LifecycleStateInService), ids[0]) })
	_, err := a.sdk.SetInstanceHealth(t.Context(), &sdk.SetInstanceHealthInput{InstanceId: &ids[1], HealthStatus: aws.String("Fine")})
	wantError(t, err, "ValidationError", "Valid instance health states are: [Healthy, Unhealthy].")

	id := must(a.sdk.StartInstanceRefresh(t.Context(), &sdk.StartInstanceRefreshInput{AutoScalingGroupName: g, Preferences: &types.RefreshPreferences{MinHealthyPercentage: aws.Int32(50)}}))(t).InstanceRefreshId
	eventually(t, "refreshed", func() bool {
		all := must(a.sdk.DescribeInstanceRefreshes(t.Context(), &sdk.DescribeInstanceRefreshesInput{AutoScalingGroupName: g}))(t).InstanceRefreshes
		return *all[0].InstanceRefreshId == *id && all[0].Status == types.InstanceRefreshStatusSuccessful && *all[0].PercentageComplete == 100
	})
	_, err = a.sdk.CancelInstanceRefresh(t.Context(), &sdk.CancelInstanceRefreshInput{AutoScalingGroupName: g})
	wantError(t, err, "ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group g")

	tag := types.Tag{ResourceId: g, ResourceType: aws.String("auto-scaling-group"), Key: aws.String("team"), Value: aws.String("b"), PropagateAtLaunch: aws.Bool(true)}
	must(a.sdk.CreateOrUpdateTags(t.Context(), &sdk.CreateOrUpdateTagsInput{Tags: []types.Tag{tag}}))(t)
	tags := must(a.sdk.DescribeTags(t.Context(), &sdk.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("auto-scaling-group"), Values: []string{"g"}}}}))(t).Tags
	same(t, "tags", []any{len(tags), *tags[0].Key, *tags[0].Value, *tags[0].PropagateAtLaunch}, []any{1, "team", "b", true})
	must(a.sdk.DeleteTags(t.Context(), &sdk.DeleteTagsInput{Tags: []types.Tag{tag}}))(t)
	same(t, "no tags", len(a.group(t, "g").Tags), 0)

	_, err = a.sdk.DeleteAutoScalingGroup(t.Context(), &sdk.DeleteAutoScalingGroupInput{AutoScalingGroupName: g})
	wantError(t, err, "ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
	must(a.sdk.DeleteAutoScalingGroup(t.Context(), &sdk.DeleteAutoScalingGroupInput{AutoScalingGroupName: g, ForceDelete: aws.Bool(true)}))(t)
	eventually(t, "deleted", func() bool { return a.group(t, "g").AutoScalingGroupName == nil })
}

func TestSDKChangesHooksAndPools(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	a.made(t, 0, 5)
	put := func(in *sdk.PutLifecycleHookInput) error {
		in.AutoScalingGroupName, in.LifecycleHookName = g, aws.String("up")
		_, err := a.sdk.PutLifecycleHook(t.Context(), in)
		return err
	}
	wantError(t, put(&sdk.PutLifecycleHookInput{}), "ValidationError", "Lifecycle Transition is required when creating a new Lifecycle Hook")
	check(t, put(&sdk.PutLifecycleHookInput{LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"), HeartbeatTimeout: aws.Int32(60), DefaultResult: aws.String("CONTINUE")}))
	check(t, put(&sdk.PutLifecycleHookInput{NotificationMetadata: aws.String("m")}))
	wantError(t, put(&sdk.PutLifecycleHookInput{DefaultResult: aws.String("MAYBE")}), "ValidationError", "Invalid default result 'MAYBE'; use CONTINUE or ABANDON")
	wantError(t, put(&sdk.PutLifecycleHookInput{NotificationTargetARN: aws.String("arn:aws:sqs:eu-west-1:210987654321:q.fifo")}), "ValidationError",
		"FIFO queues are not supported as notification targets: arn:aws:sqs:eu-west-1:210987654321:q.fifo")
	hook := must(a.sdk.DescribeLifecycleHooks(t.Context(), &sdk.DescribeLifecycleHooksInput{AutoScalingGroupName: g}))(t).LifecycleHooks[0]
	same(t, "changed in place", []any{*hook.HeartbeatTimeout, *hook.DefaultResult, *hook.NotificationMetadata, *hook.LifecycleTransition}, []any{int32(60), "CONTINUE", "m", "autoscaling:EC2_INSTANCE_LAUNCHING"})

	must(a.sdk.PutWarmPool(t.Context(), &sdk.PutWarmPoolInput{
		AutoScalingGroupName: g, MaxGroupPreparedCapacity: aws.Int32(2), PoolState: types.WarmPoolStateRunning, InstanceReusePolicy: &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(true)},
	}))(t)
	must(a.sdk.PutWarmPool(t.Context(), &sdk.PutWarmPoolInput{AutoScalingGroupName: g, MinSize: aws.Int32(1)}))(t)
	pool := func() *types.WarmPoolConfiguration { return a.group(t, "g").WarmPoolConfiguration }
	same(t, "pool", []any{*pool().MaxGroupPreparedCapacity, *pool().MinSize, pool().PoolState, *pool().InstanceReusePolicy.ReuseOnScaleIn}, []any{int32(2), int32(1), types.WarmPoolStateRunning, true})
	must(a.sdk.PutWarmPool(t.Context(), &sdk.PutWarmPoolInput{AutoScalingGroupName: g, MaxGroupPreparedCapacity: aws.Int32(-1)}))(t)
	same(t, "cleared", pool().MaxGroupPreparedCapacity, (*int32)(nil))
	_, err := a.sdk.PutWarmPool(t.Context(), &sdk.PutWarmPoolInput{AutoScalingGroupName: g, PoolState: "Frozen"})
	if err == nil || !strings.Contains(err.Error(), "Member must satisfy enum value set: [Stopped, Running, Hibernated]") {
		t.Errorf("an unknown state: %v", err)
	}
	eventually(t, "the hook holds warm instances", func() bool { return *a.group(t, "g").WarmPoolSize == 5 })
	must(a.sdk.DeleteWarmPool(t.Context(), &sdk.DeleteWarmPoolInput{AutoScalingGroupName: g}))(t)
	same(t, "while it goes", pool().Status, types.WarmPoolStatusPendingDelete)
	must(a.sdk.DeleteLifecycleHook(t.Context(), &sdk.DeleteLifecycleHookInput{AutoScalingGroupName: g, LifecycleHookName: aws.String("up")}))(t)
	eventually(t, "no pool", func() bool { return pool() == nil })
	_, err = a.sdk.DeleteWarmPool(t.Context(), &sdk.DeleteWarmPoolInput{AutoScalingGroupName: g})
	wantError(t, err, "ValidationError", "No warm pool found for AutoScalingGroup g")
	_, err = a.sdk.DeleteLifecycleHook(t.Context(), &sdk.DeleteLifecycleHookInput{AutoScalingGroupName: g, LifecycleHookName: aws.String("up")})
	wantError(t, err, "ValidationError", "No Lifecycle Hook found: up")
}

func TestSDKMixedGroup(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	in := create("g", 2, 5)
	in.MixedInstancesPolicy = &types.MixedInstancesPolicy{
		LaunchTemplate:        &types.LaunchTemplate{LaunchTemplateSpecification: in.LaunchTemplate, Overrides: []types.LaunchTemplateOverrides{{InstanceType: aws.String("c5.large")}}},
		InstancesDistribution: &types.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: aws.Int32(0), SpotAllocationStrategy: aws.String("price-capacity-optimized")},
	}
	in.LaunchTemplate = nil
	must(a.sdk.CreateAutoScalingGroup(t.Context(), in))(t)
	for _, id := range a.reach(t, "g", 2, types.LifecycleStateInService) {
		machine, _ := a.States.EC2.Instance(id)
		same(t, "machine", []any{machine.Spot(), machine.Type, machine.Tags["aws:autoscaling:groupName"]}, []any{true, "c5.large", "g"})
	}
	policy := a.group(t, "g").MixedInstancesPolicy
	same(t, "policy", []any{*policy.LaunchTemplate.Overrides[0].InstanceType, *policy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateName,
		*policy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity, *policy.InstancesDistribution.SpotAllocationStrategy},
		[]any{"c5.large", "workers", int32(0), "price-capacity-optimized"})
}

// Only its operator changes a group with an operator.
func TestSDKOperatorsAndContention(t *testing.T) {
	t.Parallel()
	a := newGroups(t)
	in := create("g", 0, 5)
	in.Operator = &types.Operator{Principal: aws.String("eks.amazonaws.com")}
	must(a.sdk.CreateAutoScalingGroup(t.Context(), in))(t)
	group := a.group(t, "g")
	same(t, "shown", *group.Operator.Principal, "eks.amazonaws.com")
	desired := &sdk.SetDesiredCapacityInput{AutoScalingGroupName: g, DesiredCapacity: aws.Int32(1)}
	_, err := a.sdk.SetDesiredCapacity(t.Context(), desired)
	wantError(t, err, "AccessDenied", "The operation autoscaling:SetDesiredCapacity is not permitted on resource: "+*group.AutoScalingGroupARN+" because it is managed by the operator eks.amazonaws.com.")
	check(t, a.States.AutoScaling.SetDesired("g", 1, false))
	id := a.reach(t, "g", 1, types.LifecycleStateInService)[0]
	_, err = a.sdk.TerminateInstanceInAutoScalingGroup(t.Context(), &sdk.TerminateInstanceInAutoScalingGroupInput{InstanceId: &id, ShouldDecrementDesiredCapacity: aws.Bool(true)})
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("by instance: %v", err)
	}

	check(t, a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: "free", Max: 1, Template: ec2.TemplateRef{Name: "workers"}}))
	a.States.AutoScaling.Contend(1)
	desired.AutoScalingGroupName = aws.String("free")
	_, err = a.sdk.SetDesiredCapacity(t.Context(), desired)
	wantError(t, err, "ResourceContention", "You already have a pending update to an Amazon EC2 Auto Scaling resource: free")
	must(a.sdk.SetDesiredCapacity(t.Context(), desired))(t)
	desired.DesiredCapacity = aws.Int32(2)
	_, err = a.sdk.SetDesiredCapacity(t.Context(), desired)
	wantError(t, err, "ValidationError", "New SetDesiredCapacity value 2 is above max value 1 for the AutoScalingGroup.")
	check(t, a.States.AutoScaling.Update("free", func(g *autoscaling.Group) error { g.Cooldown = 1 << 40; return nil }))
	desired.DesiredCapacity, desired.HonorCooldown = aws.Int32(0), aws.Bool(true)
	_, err = a.sdk.SetDesiredCapacity(t.Context(), desired)
	wantError(t, err, "ScalingActivityInProgress", "The group free is in its cooldown")
}
