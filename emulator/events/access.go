package events

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// accesses are the permissions that PutEvents needs: one for each event, with its condition keys
// (EventBridge User Guide, "Using IAM policy conditions in Amazon EventBridge"). Other actions have
// the usual one.
func (s *State) accesses(r *wire.Request) []wire.Access {
	if r.Action != "PutEvents" {
		return nil
	}
	var in putEventsInput
	if r.Decode(&in) != nil {
		return nil
	}
	var all []wire.Access
	for _, e := range in.Entries {
		all = append(all, wire.Access{
			Action: "events:PutEvents", Resource: s.busARN(busName(e.EventBusName)),
			Keys: map[string][]string{"events:source": {e.Source}, "events:detail-type": {e.DetailType}},
		})
	}
	return all
}
