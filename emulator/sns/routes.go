package sns

import (
	"cmp"
	"maps"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is SNS on the wire.
func Service(s *State) wire.Service {
	a := &api{state: s}
	return wire.Service{
		Name:         "sns",
		Protocol:     wire.Query,
		XMLNamespace: "http://sns.amazonaws.com/doc/2010-03-31/",
		Resource:     s.resource,
		Accesses:     s.accesses,
		Unauthorized: "AuthorizationError",
		Throttled:    wire.Errorf("Throttled", "Rate exceeded"),
		Actions: map[string]wire.Action{
			"CreateTopic":               wire.Do(a.createTopic),
			"DeleteTopic":               wire.Do(a.deleteTopic),
			"GetSubscriptionAttributes": wire.Do(a.getSubscriptionAttributes),
			"GetTopicAttributes":        wire.Do(a.getTopicAttributes),
			"ListSubscriptionsByTopic":  wire.Do(a.listSubscriptionsByTopic),
			"ListTagsForResource":       wire.Do(a.listTags),
			"ListTopics":                wire.Do(a.listTopics),
			"Publish":                   wire.Do(a.publish),
			"SetSubscriptionAttributes": wire.Do(a.setSubscriptionAttributes),
			"SetTopicAttributes":        wire.Do(a.setTopicAttributes),
			"Subscribe":                 wire.Do(a.subscribe),
			"TagResource":               wire.Do(a.tagResource),
			"Unsubscribe":               wire.Do(a.unsubscribe),
			"UntagResource":             wire.Do(a.untagResource),
		},
	}
}

// resource is the ARN of a request's topic. Actions on a subscription have none (Service
// Authorization Reference, "Actions defined by Amazon SNS").
func (s *State) resource(r *wire.Request) string {
	if name := r.Value("Name"); name != "" {
		return s.scope.ARN("sns", name)
	}
	return cmp.Or(r.Value("TopicArn"), r.Value("ResourceArn"))
}

// accesses are the usual permission, with the policy of the topic.
func (s *State) accesses(r *wire.Request) []wire.Access {
	out := wire.Access{Action: "sns:" + r.Action, Resource: s.resource(r)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[out.Resource]; t != nil {
		out.Policy, out.Keys = t.policy, wire.TagKeys("aws:ResourceTag/", t.tags)
		maps.Copy(out.Keys, map[string][]string{"aws:SourceOwner": {s.scope.Account}})
	}
	if strings.HasPrefix(r.Action, "Subscribe") {
		out.Keys = maps.Clone(out.Keys)
		if out.Keys == nil {
			out.Keys = map[string][]string{}
		}
		out.Keys["sns:Protocol"], out.Keys["sns:Endpoint"] = []string{r.Value("Protocol")}, []string{r.Value("Endpoint")}
	}
	return []wire.Access{out}
}
