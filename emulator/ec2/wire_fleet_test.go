package ec2_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// fleetInput requests n instances as Karpenter does.
func fleetInput(t *testing.T, c *ec2.Client, n int32, capacity types.DefaultTargetCapacityType, kinds ...types.InstanceType) *ec2.CreateFleetInput {
	t.Helper()
	made := launchTemplate(t, c, "karpenter.k8s.aws/fleet", emulated.X86)
	config := types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
		LaunchTemplateName: made.LaunchTemplateName, Version: aws.String("$Latest"),
	}}
	for _, kind := range kinds {
		for _, subnet := range must(c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}))(t).Subnets {
			config.Overrides = append(config.Overrides, types.FleetLaunchTemplateOverridesRequest{
				InstanceType: kind, SubnetId: subnet.SubnetId, AvailabilityZone: subnet.AvailabilityZone,
				ImageId: aws.String(emulated.ImageID(emulated.X86)), Priority: aws.Float64(0.1),
			})
		}
	}
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{config},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{DefaultTargetCapacityType: capacity, TotalTargetCapacity: &n},
	}
	if capacity == types.DefaultTargetCapacityTypeSpot {
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	} else {
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	for _, resource := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: resource, Tags: []types.Tag{
			{Key: aws.String("karpenter.sh/nodepool"), Value: aws.String("default")}, {Key: aws.String("eks:eks-cluster-name"), Value: aws.String("sandbox")},
		}})
	}
	return in
}

func TestSDKCreatesAFleet(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	if err := server.States.EC2.SetSpotPrice("m5.large", "eu-west-1b", 0.001); err != nil {
		t.Fatal(err)
	}
	in := fleetInput(t, c, 3, types.DefaultTargetCapacityTypeSpot, "c5.large", "m5.large")
	in.DryRun = aws.Bool(true)
	_, err := c.CreateFleet(t.Context(), in)
	wantCode(t, "a dry run", err, "DryRunOperation")
	in.DryRun = nil
	out := must(c.CreateFleet(t.Context(), in))(t)
	if len(out.Instances) != 1 || len(out.Errors) != 0 {
		t.Fatalf("fleet: %+v", out)
	}
	got := out.Instances[0]
	o := got.LaunchTemplateAndOverrides.Overrides
	same(t, "instances", []any{
		len(got.InstanceIds), got.InstanceType, got.Lifecycle, *o.AvailabilityZone, o.InstanceType, *o.ImageId, *o.SubnetId, *o.Priority,
		*got.LaunchTemplateAndOverrides.LaunchTemplateSpecification.Version,
	}, []any{
		3, types.InstanceTypeM5Large, types.InstanceLifecycleSpot, "eu-west-1b", types.InstanceTypeM5Large, emulated.ImageID(emulated.X86),
		*in.LaunchTemplateConfigs[0].Overrides[4].SubnetId, 0.1, "1",
	})
	described := must(c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{
		Filters: []types.Filter{
			filter("tag-key", "karpenter.sh/nodepool"), filter("tag:eks:eks-cluster-name", "sandbox"),
			filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down"),
		},
		MaxResults: aws.Int32(1000),
	}))(t).Reservations[0].Instances
	same(t, "described", []any{
		len(described), described[0].SpotInstanceRequestId != nil, *described[0].SubnetId, *described[0].SecurityGroups[0].GroupId,
		*described[0].Placement.AvailabilityZone, time.Since(*described[0].LaunchTime) < time.Minute,
	}, []any{3, true, *o.SubnetId, "sg-0a1f3f2be6c5d4e02", "eu-west-1b", true})
	fleets := must(c.DescribeFleets(t.Context(), &ec2.DescribeFleetsInput{FleetIds: []string{*out.FleetId}}))(t).Fleets
	same(t, "fleet", []any{
		fleets[0].Type, *fleets[0].FulfilledCapacity, *fleets[0].TargetCapacitySpecification.SpotTargetCapacity, len(fleets[0].Instances), len(fleets[0].Tags),
	}, []any{types.FleetTypeInstant, 3.0, int32(3), 1, 2})
	same(t, "fleets by no id", len(must(c.DescribeFleets(t.Context(), &ec2.DescribeFleetsInput{}))(t).Fleets), 0)
	_, err = c.DescribeFleets(t.Context(), &ec2.DescribeFleetsInput{FleetIds: []string{"fleet-0"}})
	wantCode(t, "an unknown fleet", err, "InvalidFleetId.NotFound")

	ended := must(c.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: got.InstanceIds}))(t)
	for _, transition := range ended.TerminatingInstances {
		same(t, "state", transition.CurrentState.Name, types.InstanceStateNameShuttingDown)
	}
}

func TestSDKReadsWhyAFleetFailed(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	in := fleetInput(t, c, 1, types.DefaultTargetCapacityTypeOnDemand, "c5.large", "m5.large")
	cloud := server.States.EC2
	cloud.SetCapacity(emulated.Offering{Type: "c5.large", CapacityType: emulated.OnDemand}, 0)
	out := must(c.CreateFleet(t.Context(), in))(t)
	same(t, "another type", []any{len(out.Errors), out.Instances[0].InstanceType, out.Instances[0].Lifecycle},
		[]any{3, types.InstanceTypeM5Large, types.InstanceLifecycleOnDemand})
	in.ClientToken = nil // the SDK set one
	cloud.SetCapacity(emulated.Offering{}, 0)
	out = must(c.CreateFleet(t.Context(), in))(t)
	same(t, "nothing", []int{len(out.Errors), len(out.Instances)}, []int{6, 0})
	e := out.Errors[5]
	same(t, "error", []any{*e.ErrorCode, e.Lifecycle, e.LaunchTemplateAndOverrides.Overrides.InstanceType, *e.LaunchTemplateAndOverrides.Overrides.AvailabilityZone},
		[]any{"InsufficientInstanceCapacity", types.InstanceLifecycleOnDemand, types.InstanceTypeM5Large, "eu-west-1c"})
	_, err := c.RunInstances(t.Context(), &ec2.RunInstancesInput{ImageId: aws.String("ami-1"), MinCount: aws.Int32(1), MaxCount: aws.Int32(1)})
	wantCode(t, "running one", err, "InsufficientInstanceCapacity")
	cloud.RestoreCapacity()

	in.ClientToken = nil
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("none")
	_, err = c.CreateFleet(t.Context(), in)
	wantCode(t, "no template", err, "InvalidLaunchTemplateName.NotFoundException")
	in.Type = types.FleetTypeMaintain
	_, err = c.CreateFleet(t.Context(), in)
	wantCode(t, "a fleet to maintain", err, "UnsupportedOperation")
	in.Type = types.FleetTypeInstant
	in.LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements = &types.InstanceRequirementsRequest{
		MemoryMiB: &types.MemoryMiBRequest{Min: aws.Int32(1)}, VCpuCount: &types.VCpuCountRangeRequest{Min: aws.Int32(1)},
	}
	_, err = c.CreateFleet(t.Context(), in)
	wantCode(t, "types by attribute", err, "UnsupportedOperation")

	server.Gate.Throttle("ec2", "CreateFleet", 1)
	_, err = c.CreateFleet(t.Context(), in)
	wantCode(t, "too many calls", err, "RequestLimitExceeded")
	var response interface{ HTTPStatusCode() int }
	if !errors.As(err, &response) || response.HTTPStatusCode() != http.StatusServiceUnavailable {
		t.Errorf("too many calls: %v is not of status 503", err)
	}
}
