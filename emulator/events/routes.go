package events

import (
	"cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is the EventBridge API.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "events",
		Protocol:     wire.JSON11,
		TargetPrefix: "AWSEvents",
		Background:   s.Run,
		Resource:     s.resource,
		Accesses:     s.accesses,
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

// resource is the ARN of the rule or bus that a request is about.
func (s *State) resource(r *wire.Request) string {
	bus := busName(r.Value("EventBusName"))
	switch r.Action {
	case "TestEventPattern", "ListEventBuses", "ListRuleNamesByTarget":
		return ""
	case "PutEvents":
		return s.busARN(bus)
	case "CreateEventBus", "DeleteEventBus", "DescribeEventBus":
		return s.busARN(busName(r.Value("Name")))
	case "ListRules":
		return s.ruleARN(bus, "*")
	default:
		return cmp.Or(r.Value("ResourceARN"), s.ruleARN(bus, cmp.Or(r.Value("Name"), r.Value("Rule"))))
	}
}
