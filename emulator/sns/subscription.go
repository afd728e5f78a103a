package sns

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Subscription is a queue that receives the messages of a topic.
type Subscription struct {
	ARN      string
	TopicARN string
	Protocol string // "sqs"
	Endpoint string // ARN of the queue
	Raw      bool
	// FilterPolicy limits the messages by their attributes; empty: all messages.
	FilterPolicy string
	// RedrivePolicy names the queue for messages that cannot be delivered, as JSON.
	RedrivePolicy string
}

type subscription struct{ Subscription }

// Names of subscription attributes (Amazon SNS API Reference, SetSubscriptionAttributes).
const (
	attributeRaw     = "RawMessageDelivery"
	attributeFilter  = "FilterPolicy"
	attributeRedrive = "RedrivePolicy"
)

// Subscribe subscribes a queue of the account. AWS confirms such a subscription at once. The same
// endpoint has one subscription for each topic. Errors: NotFound, InvalidParameter.
func (s *State) Subscribe(topicARN, protocol, endpoint string, attributes map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(topicARN)
	if err != nil {
		return "", err
	}
	parts := strings.Split(endpoint, ":")
	switch {
	case protocol != "sqs":
		return "", invalid("protocol", "this emulator delivers to SQS queues only")
	case len(parts) != 6 || parts[2] != "sqs":
		return "", invalid("SQS endpoint ARN", "%s is not the ARN of a queue", endpoint)
	case strings.HasSuffix(endpoint, ".fifo"):
		return "", invalid("Endpoint", "Please use FIFO SQS queue only with FIFO topics")
	case parts[3] != s.scope.Region || parts[4] != s.scope.Account:
		return "", invalid("Endpoint", "this emulator delivers to queues of its own account and region only")
	}
	next := &subscription{Subscription{ARN: t.arn + ":" + newID(), TopicARN: t.arn, Protocol: protocol, Endpoint: endpoint}}
	for name, value := range attributes {
		if err := next.set(name, value); err != nil {
			return "", err
		}
	}
	if i := slices.IndexFunc(t.subscriptions, func(o *subscription) bool { return o.Endpoint == endpoint }); i >= 0 {
		old := t.subscriptions[i]
		next.ARN = old.ARN
		if len(attributes) > 0 && next.Subscription != old.Subscription {
			return "", invalid("Attributes", "Subscription already exists with different attributes")
		}
		return old.ARN, nil
	}
	t.subscriptions = append(t.subscriptions, next)
	return next.ARN, nil
}

// set changes an attribute. Errors: InvalidParameter.
func (u *subscription) set(name, value string) error {
	switch name {
	case attributeRaw:
		if value != "true" && value != "false" {
			return invalid(attributeRaw, "Invalid value [%s]. Must be true or false.", value)
		}
		u.Raw = value == "true"
	case attributeFilter:
		var filter map[string]any
		if value != "" && json.Unmarshal([]byte(value), &filter) != nil {
			return invalid(attributeFilter, "failed to parse JSON.")
		}
		u.FilterPolicy = value
		if len(filter) == 0 {
			u.FilterPolicy = ""
		}
	case "FilterPolicyScope":
		if value != "MessageAttributes" {
			return invalid(name, "this emulator filters by message attributes only")
		}
	case attributeRedrive:
		if _, err := deadLetterOf(value); err != nil {
			return err
		}
		u.RedrivePolicy = value
	default:
		return invalid("AttributeName", "this emulator does not have the attribute %s", name)
	}
	return nil
}

// deadLetterOf returns the queue that a redrive policy names; empty without one.
func deadLetterOf(redrive string) (string, error) {
	if redrive == "" {
		return "", nil
	}
	var p struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if err := json.Unmarshal([]byte(redrive), &p); err != nil || !strings.Contains(p.Target, ":sqs:") {
		return "", invalid(attributeRedrive, "deadLetterTargetArn is an invalid arn")
	}
	return p.Target, nil
}

// lookup returns a subscription. The caller holds the lock. Errors: NotFound.
func (s *State) lookup(arn string) (*topic, int, error) {
	for _, t := range s.topics {
		if i := slices.IndexFunc(t.subscriptions, func(u *subscription) bool { return u.ARN == arn }); i >= 0 {
			return t, i, nil
		}
	}
	return nil, 0, notFound("Subscription")
}

// Unsubscribe ends a subscription. It succeeds if there is none.
func (s *State) Unsubscribe(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, i, err := s.lookup(arn); err == nil {
		t.subscriptions = slices.Delete(slices.Clone(t.subscriptions), i, i+1)
	}
}

// SetSubscriptionAttribute changes an attribute. Errors: NotFound, InvalidParameter.
func (s *State) SetSubscriptionAttribute(arn, name, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, i, err := s.lookup(arn)
	if err != nil {
		return err
	}
	changed := *t.subscriptions[i]
	if err := changed.set(name, value); err != nil {
		return err
	}
	t.subscriptions = slices.Clone(t.subscriptions)
	t.subscriptions[i] = &changed
	return nil
}

// SubscriptionAttributes returns the attributes as GetSubscriptionAttributes does. Errors: NotFound.
func (s *State) SubscriptionAttributes(arn string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, i, err := s.lookup(arn)
	if err != nil {
		return nil, err
	}
	u := t.subscriptions[i]
	out := map[string]string{
		"SubscriptionArn": u.ARN, "TopicArn": u.TopicARN, "Protocol": u.Protocol, "Endpoint": u.Endpoint, "Owner": s.scope.Account,
		attributeRaw: map[bool]string{true: "true", false: "false"}[u.Raw], "PendingConfirmation": "false", "ConfirmationWasAuthenticated": "true",
	}
	optional := map[string]string{attributeFilter: u.FilterPolicy, attributeRedrive: u.RedrivePolicy}
	maps.DeleteFunc(optional, func(_, value string) bool { return value == "" })
	maps.Copy(out, optional)
	return out, nil
}

// Subscriptions returns the subscriptions of a topic. Errors: NotFound.
func (s *State) Subscriptions(topicARN string) ([]Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(topicARN)
	if err != nil {
		return nil, err
	}
	var out []Subscription
	for _, u := range t.subscriptions {
		out = append(out, u.Subscription)
	}
	return out, nil
}
