package elb

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// Service is Elastic Load Balancing v2 on the wire.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "elasticloadbalancing",
		Protocol:     wire.Query,
		XMLNamespace: "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/",
		Resource:     resource,
		Actions: map[string]wire.Action{
			"CreateTargetGroup":             wire.Do(a.createTargetGroup),
			"DeleteTargetGroup":             wire.Do(a.deleteTargetGroup),
			"DeregisterTargets":             wire.Do(a.deregisterTargets),
			"DescribeTargetGroupAttributes": wire.Do(a.describeAttributes),
			"DescribeTargetGroups":          wire.Do(a.describeTargetGroups),
			"DescribeTargetHealth":          wire.Do(a.describeTargetHealth),
			"ModifyTargetGroupAttributes":   wire.Do(a.modifyAttributes),
			"RegisterTargets":               wire.Do(a.registerTargets),
		},
	}
}

// resource is the ARN of a request's target group. Describe calls have none (Service Authorization
// Reference, "Actions defined by AWS Elastic Load Balancing V2").
func resource(r *wire.Request) string {
	switch r.Action {
	case "DescribeTargetGroups", "DescribeTargetHealth", "DescribeTargetGroupAttributes":
		return ""
	}
	return r.Value("TargetGroupArn")
}
