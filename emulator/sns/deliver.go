package sns

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
)

// principal is SNS's service principal in queue policies.
const principal = "sns.amazonaws.com"

// maxMessage is the limit for a message (Amazon SNS API Reference, Publish).
const maxMessage = 256 << 10

// Deliver publishes for an AWS service, which needs permission in the topic's policy. The request
// has no condition keys. Errors are *sqs.DeliveryError.
func (s *State) Deliver(topicARN, body string, from sqs.Sender) error {
	s.mu.Lock()
	t := s.topics[topicARN]
	if t == nil {
		s.mu.Unlock()
		return &sqs.DeliveryError{Reason: sqs.NoResource, Message: "Topic does not exist: " + topicARN}
	}
	decision := t.policy.Decide(policy.Request{Service: from.ServicePrincipal, Action: "sns:Publish", Resource: topicARN, Keys: map[string][]string{}})
	key := t.attributes["KmsMasterKeyId"]
	s.mu.Unlock()
	switch {
	case decision != policy.Allowed:
		return &sqs.DeliveryError{Reason: sqs.NoPermissions, Message: "The policy of " + topicARN + " does not allow " + from.ServicePrincipal + " to perform sns:Publish"}
	case strings.HasSuffix(key, "alias/aws/sns"):
		// The policy of the AWS managed key cannot be changed to allow other services (Amazon SNS
		// Developer Guide, "Configuring AWS KMS permissions").
		return &sqs.DeliveryError{Reason: sqs.NoPermissions, Message: topicARN + " is encrypted with alias/aws/sns, which " + from.ServicePrincipal + " may not use"}
	}
	_, err := s.Publish(topicARN, body, "", nil)
	if err != nil {
		return &sqs.DeliveryError{Message: err.Error()}
	}
	return nil
}

// Attribute is a message attribute.
type Attribute struct {
	Type  string `json:"Type"`
	Value string `json:"Value"`
}

// Publish sends a message to the topic's subscriptions, and returns its id. A message that a queue
// refuses goes to the subscription's dead-letter queue, or is lost: SNS does not retry what its
// client must fix (Amazon SNS Developer Guide, "Amazon SNS dead-letter queues"). Errors: NotFound,
// InvalidParameter.
func (s *State) Publish(topicARN, message, subject string, attributes map[string]Attribute) (string, error) {
	s.mu.Lock()
	t, err := s.find(topicARN)
	if err != nil {
		s.mu.Unlock()
		return "", err
	}
	subscriptions := slices.Clone(t.subscriptions)
	s.mu.Unlock()
	switch {
	case message == "":
		return "", invalid("Message", "Empty message")
	case len(message) > maxMessage:
		return "", invalid("Message", "Message too long")
	}
	id := newID()
	for _, u := range subscriptions {
		if u.FilterPolicy != "" && !passes(u.FilterPolicy, attributes) {
			continue
		}
		body, sender := s.wrap(u, id, message, subject, attributes), s.sender(topicARN)
		if u.Raw {
			body, sender.MessageAttributes = message, values(attributes)
		}
		if s.deliver(u.Endpoint, body, sender) == nil {
			continue
		}
		if dead, err := deadLetterOf(u.RedrivePolicy); err == nil && dead != "" {
			_ = s.deliver(dead, body, sender) // AWS drops it too
		}
	}
	return id, nil
}

// sender is SNS as queue policies see it.
func (s *State) sender(topicARN string) sqs.Sender {
	return sqs.Sender{ServicePrincipal: principal, SourceARN: topicARN, SourceAccount: s.scope.Account}
}

func values(attributes map[string]Attribute) map[string]string {
	out := map[string]string{}
	for name, a := range attributes {
		out[name] = a.Value
	}
	return out
}

// passes reports whether a message passes a filter policy of plain values. Every key must be there
// (Amazon SNS Developer Guide, "Subscription filter policies").
func passes(filter string, attributes map[string]Attribute) bool {
	var want map[string][]any
	if json.Unmarshal([]byte(filter), &want) != nil {
		return false
	}
	for name, allowed := range want {
		if !slices.Contains(allowed, any(attributes[name].Value)) {
			return false
		}
	}
	return true
}

// envelope is a message without raw delivery (Amazon SNS Developer Guide, "Fanout to Amazon SQS
// queues").
type envelope struct {
	Type             string
	MessageID        string `json:"MessageId"`
	TopicArn         string
	Subject          string `json:",omitempty"`
	Message          string
	Timestamp        string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
	UnsubscribeURL   string
	Attributes       map[string]Attribute `json:"MessageAttributes,omitempty"`
}

// wrap puts a message into SNS's envelope. Its signature is not valid.
func (s *State) wrap(u *subscription, id, message, subject string, attributes map[string]Attribute) string {
	endpoint := "https://sns." + s.scope.Region + ".amazonaws.com/"
	text, err := json.Marshal(envelope{
		Type: "Notification", MessageID: id, TopicArn: u.TopicARN, Subject: subject, Message: message,
		Timestamp:        time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		SignatureVersion: "1", Signature: "RU1VTEFURUQ=",
		SigningCertURL: endpoint + "SimpleNotificationService-emulated.pem",
		UnsubscribeURL: endpoint + "?Action=Unsubscribe&SubscriptionArn=" + u.ARN, Attributes: attributes,
	})
	if err != nil {
		return message // unreachable: all members are text
	}
	return string(text)
}
