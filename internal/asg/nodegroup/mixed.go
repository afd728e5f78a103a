package nodegroup

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// mixed converts a mixed instances policy, as far as a NodeGroup can express
// it.
func mixed(m *types.MixedInstancesPolicy) *v1beta1.MixedInstances {
	out := &v1beta1.MixedInstances{}
	if m.LaunchTemplate != nil {
		for _, o := range m.LaunchTemplate.Overrides {
			if t := aws.ToString(o.InstanceType); t != "" {
				out.InstanceTypes = append(out.InstanceTypes, t)
			}
		}
	}
	out.OnDemandPercent = 100 // AWS's own default (API Reference, InstancesDistribution)
	if d := m.InstancesDistribution; d != nil {
		out.OnDemandBase = aws.ToInt32(d.OnDemandBaseCapacity)
		out.SpotAllocationStrategy = aws.ToString(d.SpotAllocationStrategy)
		if d.OnDemandPercentageAboveBaseCapacity != nil {
			out.OnDemandPercent = *d.OnDemandPercentageAboveBaseCapacity
		}
	}
	return out
}

// AWS's defaults (EC2 Auto Scaling API Reference, InstancesDistribution).
const (
	usualOnDemand  = "prioritized"
	usualSpotPools = 2
)

// inexpressible lists the settings of a policy that a NodeGroup cannot express
// and would delete.
func inexpressible(m *types.MixedInstancesPolicy) []string {
	var weights, templates, images, requirements bool
	if m.LaunchTemplate != nil {
		for _, o := range m.LaunchTemplate.Overrides {
			weights = weights || o.WeightedCapacity != nil
			templates = templates || o.LaunchTemplateSpecification != nil
			images = images || o.ImageId != nil
			requirements = requirements || o.InstanceRequirements != nil
		}
	}
	d := m.InstancesDistribution
	if d == nil {
		d = &types.InstancesDistribution{}
	}
	var out []string
	for _, what := range []struct {
		there bool
		name  string
	}{
		{weights, "weights of instance types"},
		{templates, "launch templates of single instance types"},
		{images, "images of single instance types"},
		{requirements, "instance requirements"},
		{d.OnDemandAllocationStrategy != nil && *d.OnDemandAllocationStrategy != usualOnDemand, "an on-demand allocation strategy"},
		{aws.ToInt32(d.SpotInstancePools) != 0 && *d.SpotInstancePools != usualSpotPools, "a number of spot pools"},
		{aws.ToString(d.SpotMaxPrice) != "", "a maximum spot price"},
		{len(d.DistributionSegments) > 0, "distribution segments"},
	} {
		if what.there {
			out = append(out, what.name)
		}
	}
	return out
}
