package sqs

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// accesses are the permissions that a request needs, with the policies of its queues.
func (a *api) accesses(r *wire.Request) []wire.Access {
	if r.Action == "StartMessageMoveTask" {
		return a.state.moveAccesses(r.Value("SourceArn"), r.Value("DestinationArn"))
	}
	return []wire.Access{a.state.access("sqs:"+permission(r.Action), a.resource(r))}
}

func (s *State) access(action, queueARN string) wire.Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := wire.Access{Action: action, Resource: queueARN}
	if q := s.byARN(queueARN); q != nil {
		out.Policy, out.Keys = q.settings.policy, wire.TagKeys("aws:ResourceTag/", q.tags)
	}
	return out
}

// moveAccesses are the permissions for a redrive: to read and delete in the dead-letter queue, and
// to send to the destination, or to all source queues (SQS Developer Guide, "Configuring queue
// permissions for dead-letter queue redrive").
func (s *State) moveAccesses(source, destination string) []wire.Access {
	var all []wire.Access
	for _, action := range []string{"StartMessageMoveTask", "ReceiveMessage", "DeleteMessage", "GetQueueAttributes"} {
		all = append(all, s.access("sqs:"+action, source))
	}
	destinations := []string{destination}
	if destination == "" {
		destinations = s.sourcesOf(source)
	}
	for _, queueARN := range destinations {
		all = append(all, s.access("sqs:SendMessage", queueARN))
	}
	return all
}

// sourcesOf are the ARNs of the queues whose dead-letter queue is source.
func (s *State) sourcesOf(source string) []string {
	prefix := source[:strings.LastIndex(source, ":")+1]
	names, _, err := s.DeadLetterSources(strings.TrimPrefix(source, prefix), "", 1000)
	if err != nil {
		return nil // the call itself fails
	}
	for i, name := range names {
		names[i] = prefix + name
	}
	return names
}
