package events

import "github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"

// Service is EventBridge on the wire.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "events",
		Protocol:     wire.JSON11,
		TargetPrefix: "AWSEvents",
		Background:   s.Run,
		Actions: map[string]wire.Action{
			"CreateEventBus":        wire.Do(a.createEventBus),
			"DeleteEventBus":        wire.Do(a.deleteEventBus),
			"DeleteRule":            wire.Do(a.deleteRule),
			"DescribeEventBus":      wire.Do(a.describeEventBus),
			"DescribeRule":          wire.Do(a.describeRule),
			"DisableRule":           wire.Do(a.disableRule),
			"EnableRule":            wire.Do(a.enableRule),
			"ListEventBuses":        wire.Do(a.listEventBuses),
			"ListRuleNamesByTarget": wire.Do(a.listRuleNamesByTarget),
			"ListRules":             wire.Do(a.listRules),
			"ListTagsForResource":   wire.Do(a.listTags),
			"ListTargetsByRule":     wire.Do(a.listTargetsByRule),
			"PutEvents":             wire.Do(a.putEvents),
			"PutRule":               wire.Do(a.putRule),
			"PutTargets":            wire.Do(a.putTargets),
			"RemoveTargets":         wire.Do(a.removeTargets),
			"TagResource":           wire.Do(a.changeTags),
			"TestEventPattern":      wire.Do(a.testEventPattern),
			"UntagResource":         wire.Do(a.changeTags),
		},
	}
}
