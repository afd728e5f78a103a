package autoscaling

import "github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"

// Service is Auto Scaling on the wire. Parameters that it does not know are ignored.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "autoscaling",
		Protocol:     wire.Query,
		XMLNamespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/",
		Background:   s.Run,
		Resource:     s.resource,
		Actions: map[string]wire.Action{
			"CompleteLifecycleAction":        wire.Do(a.complete),
			"DescribeAutoScalingGroups":      wire.Do(a.describeGroups),
			"DescribeAutoScalingInstances":   wire.Do(a.describeInstances),
			"DescribeLifecycleHooks":         wire.Do(a.describeHooks),
			"DescribeWarmPool":               wire.Do(a.describePool),
			"RecordLifecycleActionHeartbeat": wire.Do(a.heartbeat),
		},
	}
}

// resource is the ARN of the group that a request wants to change; reading is not
// limited to groups.
func (s *State) resource(r *wire.Request) string {
	switch r.Action {
	case "CompleteLifecycleAction", "RecordLifecycleActionHeartbeat":
		return s.GroupARN(r.Value("AutoScalingGroupName"))
	default:
		return ""
	}
}
