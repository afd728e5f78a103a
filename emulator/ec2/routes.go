package ec2

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// Service is the EC2 API. It ignores unknown parameters.
func Service(s *State) wire.Service {
	a := &api{state: s}
	service := wire.Service{
		Name:         "ec2",
		Protocol:     wire.EC2Query,
		XMLNamespace: "http://ec2.amazonaws.com/doc/2016-11-15/",
		Background:   s.Run,
		Accesses:     a.accesses,
		Draws:        draws,
		Actions: map[string]wire.Action{
			"CancelSpotInstanceRequests":     wire.Do(a.cancelSpotInstanceRequests),
			"CreateFleet":                    wire.Do(a.createFleet),
			"CreateLaunchTemplate":           wire.Do(a.createLaunchTemplate),
			"CreateLaunchTemplateVersion":    wire.Do(a.createLaunchTemplateVersion),
			"CreateTags":                     wire.Do(a.createTags),
			"DeleteLaunchTemplate":           wire.Do(a.deleteLaunchTemplate),
			"DeleteLaunchTemplateVersions":   wire.Do(a.deleteLaunchTemplateVersions),
			"DeleteTags":                     wire.Do(a.deleteTags),
			"DescribeAvailabilityZones":      wire.Do(a.describeAvailabilityZones),
			"DescribeFleets":                 wire.Do(a.describeFleets),
			"DescribeImages":                 wire.Do(a.describeImages),
			"DescribeInstanceStatus":         wire.Do(a.describeInstanceStatus),
			"DescribeInstanceTypeOfferings":  wire.Do(a.describeInstanceTypeOfferings),
			"DescribeInstanceTypes":          wire.Do(a.describeInstanceTypes),
			"DescribeInstances":              wire.Do(a.describeInstances),
			"DescribeLaunchTemplateVersions": wire.Do(a.describeLaunchTemplateVersions),
			"DescribeLaunchTemplates":        wire.Do(a.describeLaunchTemplates),
			"DescribeRegions":                wire.Do(a.describeRegions),
			"DescribeSecurityGroups":         wire.Do(a.describeSecurityGroups),
			"DescribeSpotInstanceRequests":   wire.Do(a.describeSpotInstanceRequests),
			"DescribeSpotPriceHistory":       wire.Do(a.describeSpotPriceHistory),
			"DescribeSubnets":                wire.Do(a.describeSubnets),
			"DescribeTags":                   wire.Do(a.describeTags),
			"DescribeVpcs":                   wire.Do(a.describeVPCs),
			"ModifyLaunchTemplate":           wire.Do(a.modifyLaunchTemplate),
			"RebootInstances":                wire.Do(a.rebootInstances),
			"RunInstances":                   wire.Do(a.runInstances),
			"StartInstances":                 transition(s.Start, nil),
			"StopInstances":                  transition(s.Stop, s.SkipShutdown),
			"TerminateInstances":             transition(s.Terminate, s.SkipShutdown),
		},
	}
	for name, action := range service.Actions {
		service.Actions[name] = dryRunnable(action)
	}
	return service
}
