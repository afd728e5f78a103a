package snapshot

import (
	"regexp"
	"slices"
)

// Topic is an SNS topic between rules and queues.
type Topic struct {
	ARN string `json:"arn"`
	// Missing is true if the topic does not exist.
	Missing bool `json:"missing,omitempty"`
	// Known is true if the attributes were read, and SubscriptionsKnown if the subscriptions were.
	Known              bool `json:"known,omitempty"`
	SubscriptionsKnown bool `json:"subscriptionsKnown,omitempty"`
	// Policy is the policy document; KMSKey the key of its encryption, empty without one.
	Policy        string         `json:"policy,omitempty"`
	KMSKey        string         `json:"kmsKey,omitempty"`
	Subscriptions []Subscription `json:"subscriptions,omitempty"`
}

// Subscription is the delivery from a topic to a queue.
type Subscription struct {
	ARN string `json:"arn"`
	// Endpoint is the ARN of the queue.
	Endpoint string `json:"endpoint"`
	// Pending is true if the owner of the queue has not confirmed it: SNS then sends nothing.
	Pending bool `json:"pending,omitempty"`
	// Filter limits the messages; empty without a filter.
	Filter string `json:"filter,omitempty"`
	// DeadLetterARN is the queue for undeliverable messages; empty without one.
	DeadLetterARN string `json:"deadLetterARN,omitempty"`
}

// FindTopic returns the topic with an ARN.
func (s Snapshot) FindTopic(arn string) (Topic, bool) {
	i := slices.IndexFunc(s.Topics, func(t Topic) bool { return t.ARN == arn })
	if i < 0 {
		return Topic{ARN: arn}, false
	}
	return s.Topics[i], true
}

// SubscriptionOf returns the subscription of a queue.
func (t Topic) SubscriptionOf(queueARN string) (Subscription, bool) {
	i := slices.IndexFunc(t.Subscriptions, func(s Subscription) bool { return s.Endpoint == queueARN })
	if i < 0 {
		return Subscription{}, false
	}
	return t.Subscriptions[i], true
}

// ThroughTopics returns a rule with one more target for each queue that it reaches through a topic.
func (s Snapshot) ThroughTopics(r Rule) Rule {
	targets := r.Targets
	for _, t := range targets {
		topic, _ := s.FindTopic(t.ARN)
		for _, to := range topic.Subscriptions {
			if to.Pending {
				continue
			}
			through := t
			through.ARN, through.Topic, through.DeadLetterARN = to.Endpoint, t.ARN, to.DeadLetterARN
			r.Targets = append(slices.Clone(r.Targets), through)
		}
	}
	return r
}

var topicARN = regexp.MustCompile(`arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+`)

// TopicsIn returns the ARNs of the topics that a queue's policy names.
func TopicsIn(policy string) []string {
	all := topicARN.FindAllString(policy, -1)
	slices.Sort(all)
	return slices.Compact(all)
}
