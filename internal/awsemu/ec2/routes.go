package ec2

import "github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"

// Service is EC2 on the wire. Parameters that it does not know are ignored.
func Service(s *State) wire.Service {
	a := &api{state: s}
	service := wire.Service{
		Name:         "ec2",
		Protocol:     wire.EC2Query,
		XMLNamespace: "http://ec2.amazonaws.com/doc/2016-11-15/",
		Background:   s.Run,
		Actions: map[string]wire.Action{
			"CancelSpotInstanceRequests":   wire.Do(a.cancelSpotInstanceRequests),
			"CreateTags":                   wire.Do(a.createTags),
			"DeleteTags":                   wire.Do(a.deleteTags),
			"DescribeAvailabilityZones":    wire.Do(a.describeAvailabilityZones),
			"DescribeInstanceStatus":       wire.Do(a.describeInstanceStatus),
			"DescribeInstanceTypes":        wire.Do(a.describeInstanceTypes),
			"DescribeInstances":            wire.Do(a.describeInstances),
			"DescribeRegions":              wire.Do(a.describeRegions),
			"DescribeSpotInstanceRequests": wire.Do(a.describeSpotInstanceRequests),
			"DescribeSubnets":              wire.Do(a.describeSubnets),
			"DescribeTags":                 wire.Do(a.describeTags),
			"RebootInstances":              wire.Do(a.rebootInstances),
			"RunInstances":                 wire.Do(a.runInstances),
			"StartInstances":               transition(s.Start),
			"StopInstances":                transition(s.Stop),
			"TerminateInstances":           transition(s.Terminate),
		},
	}
	for name, action := range service.Actions {
		service.Actions[name] = dryRunnable(action)
	}
	return service
}
