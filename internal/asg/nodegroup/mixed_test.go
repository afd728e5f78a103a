package nodegroup_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

// mixedPolicy is a policy that a NodeGroup can express.
func mixedPolicy() *types.MixedInstancesPolicy {
	return &types.MixedInstancesPolicy{
		LaunchTemplate: &types.LaunchTemplate{
			LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String("lt-1"), LaunchTemplateName: aws.String("workers"), Version: aws.String("3")},
			Overrides:                   []types.LaunchTemplateOverrides{{InstanceType: aws.String("m5.large")}, {InstanceType: aws.String("m6i.large")}},
		},
		InstancesDistribution: &types.InstancesDistribution{
			OnDemandAllocationStrategy: aws.String("prioritized"), OnDemandBaseCapacity: aws.Int32(0), OnDemandPercentageAboveBaseCapacity: aws.Int32(0),
			SpotAllocationStrategy: aws.String("price-capacity-optimized"), SpotInstancePools: aws.Int32(2),
		},
	}
}

// readMixed reads a group that has a policy.
func readMixed(t *testing.T, policy *types.MixedInstancesPolicy) nodegroup.Observed {
	t.Helper()
	api := &nodegroup.API{
		DescribeGroups: func(context.Context, *sdk.DescribeAutoScalingGroupsInput, ...func(*sdk.Options)) (*sdk.DescribeAutoScalingGroupsOutput, error) {
			return &sdk.DescribeAutoScalingGroupsOutput{AutoScalingGroups: []types.AutoScalingGroup{{
				AutoScalingGroupName: aws.String("workers"), MaxSize: aws.Int32(5), VPCZoneIdentifier: aws.String("subnet-a"), MixedInstancesPolicy: policy,
			}}}, nil
		},
		DescribeHooks: func(context.Context, *sdk.DescribeLifecycleHooksInput, ...func(*sdk.Options)) (*sdk.DescribeLifecycleHooksOutput, error) {
			return &sdk.DescribeLifecycleHooksOutput{}, nil
		},
	}
	o, err := api.Observe(t.Context(), "workers", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// inexpressible is a change of a policy and the inexpressible setting that it
// adds; empty: none.
type inexpressible struct {
	change func(*types.MixedInstancesPolicy)
	has    string
}

func policies() map[string]inexpressible {
	return map[string]inexpressible{
		"one that can":    {func(*types.MixedInstancesPolicy) {}, ""},
		"no distribution": {func(p *types.MixedInstancesPolicy) { p.InstancesDistribution = nil }, ""},
		"weights":         {func(p *types.MixedInstancesPolicy) { p.LaunchTemplate.Overrides[1].WeightedCapacity = aws.String("8") }, "weights of instance types"},
		"another template": {func(p *types.MixedInstancesPolicy) {
			p.LaunchTemplate.Overrides[1].LaunchTemplateSpecification = &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("arm64")}
		}, "launch templates of single instance types"},
		"another image": {func(p *types.MixedInstancesPolicy) { p.LaunchTemplate.Overrides[1].ImageId = aws.String("ami-1") }, "images of single instance types"},
		"requirements": {func(p *types.MixedInstancesPolicy) {
			p.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{{InstanceRequirements: &types.InstanceRequirements{}}}
		}, "instance requirements"},
		"the cheapest first": {func(p *types.MixedInstancesPolicy) {
			p.InstancesDistribution.OnDemandAllocationStrategy = aws.String("lowest-price")
		}, "an on-demand allocation strategy"},
		"more spot pools": {func(p *types.MixedInstancesPolicy) { p.InstancesDistribution.SpotInstancePools = aws.Int32(4) }, "a number of spot pools"},
		"a price":         {func(p *types.MixedInstancesPolicy) { p.InstancesDistribution.SpotMaxPrice = aws.String("0.1") }, "a maximum spot price"},
		"segments": {func(p *types.MixedInstancesPolicy) {
			p.InstancesDistribution.DistributionSegments = make([]types.DistributionSegment, 1)
		}, "distribution segments"},
	}
}

// eachPolicy runs a test with a group of each policy.
func eachPolicy(t *testing.T, f func(t *testing.T, o nodegroup.Observed, has string)) {
	t.Helper()
	for name, tc := range policies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := mixedPolicy()
			tc.change(policy)
			f(t, readMixed(t, policy), tc.has)
		})
	}
}

// TestAdoptUnsupportedPolicy adopts only the hooks and explains why.
func TestAdoptUnsupportedPolicy(t *testing.T) {
	t.Parallel()
	eachPolicy(t, func(t *testing.T, o nodegroup.Observed, has string) {
		t.Helper()
		g, notes := nodegroup.Adopt(o, v1beta1.ManageAll)
		text := strings.Join(notes, "\n")
		switch {
		case has == "" && (g.Spec.Management != v1beta1.ManageAll || g.Spec.MixedInstances == nil || text != ""):
			t.Errorf("adopted as %+v; %s", g.Spec, text)
		case has != "" && (g.Spec.Management != v1beta1.ManageHooks || g.Spec.LaunchTemplate != nil || !strings.Contains(text, has+", which a NodeGroup cannot express")):
			t.Errorf("adopted as %+v; %s", g.Spec, text)
		}
	})
}

// TestUnsupportedPolicy: such a policy is never written in part, which
// would delete the rest. Other settings of the group are still managed.
func TestUnsupportedPolicy(t *testing.T) {
	t.Parallel()
	eachPolicy(t, func(t *testing.T, o nodegroup.Observed, has string) {
		t.Helper()
		for what, change := range map[string]func(*v1beta1.NodeGroupSpec){
			"nothing":     func(*v1beta1.NodeGroupSpec) {},
			"the version": func(s *v1beta1.NodeGroupSpec) { s.LaunchTemplate.Version = "4" },
			"the types": func(s *v1beta1.NodeGroupSpec) {
				s.MixedInstances = &v1beta1.MixedInstances{InstanceTypes: []string{"c5.large"}}
			},
			"the policy": func(s *v1beta1.NodeGroupSpec) { s.MixedInstances = nil },
		} {
			g := group(func(s *v1beta1.NodeGroupSpec) { // declared as observed, except its size
				s.MinSize, s.MaxSize, s.Subnets, s.MixedInstances = number(0), number(7), []string{"subnet-a"}, o.Settings.Mixed
			}, change)
			p := plan(g, o)
			i := slices.IndexFunc(p.Steps, func(s nodegroup.Step) bool { return s.Verb == nodegroup.UpdateGroup })
			got, held := p.Steps[i].Changes, strings.Join(p.Held, "\n")
			changes, waits := len(got) > 1, strings.Contains(held, "has "+has) && strings.Contains(held, "Make the change in AWS")
			if got[0].Name != "MaxSize" || changes != (has == "" && what != "nothing") || waits != (has != "" && what != "nothing") {
				t.Errorf("%s is changed: %v, held %q", what, got, held)
			}
		}
	})
}
