package sqs

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
)

// Why a delivery did not reach its queue, in EventBridge's terms
// (EventBridge User Guide, "Using dead-letter queues", ERROR_CODE).
const (
	NoPermissions = "NO_PERMISSIONS"
	NoResource    = "NO_RESOURCE"
)

// servicesSender is the SenderId of messages that AWS services send.
const servicesSender = "AIDAEMULATEDSERVICE01"

// Sender is the AWS service that sends a message, as queue policies see it.
type Sender struct {
	// ServicePrincipal is the service, such as "events.amazonaws.com".
	ServicePrincipal string
	// RoleARN is the role of the account that the service has assumed. Such a role needs no
	// permission in the queue's policy; the other fields then have no effect.
	RoleARN string
	// SourceARN is the sending resource, such as a rule: aws:SourceArn.
	SourceARN string
	// SourceAccount owns that resource: aws:SourceAccount.
	SourceAccount string
	// MessageAttributes go with the message, as strings.
	MessageAttributes map[string]string
}

// DeliveryError says why a message was rejected.
type DeliveryError struct {
	// Reason is NoPermissions or NoResource; empty if the message itself is invalid.
	Reason string
	// Message is the text for users.
	Message string
}

// Error implements error.
func (e *DeliveryError) Error() string {
	if e.Reason == "" {
		return "delivering to queue: " + e.Message
	}
	return fmt.Sprintf("delivering to queue: %s: %s", e.Reason, e.Message)
}

// Deliver sends a message for an AWS service, which needs permission in the queue policy. Its
// errors are *DeliveryError.
func (s *State) Deliver(queueARN, body string, from Sender) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.byARN(queueARN)
	if q == nil {
		return &DeliveryError{Reason: NoResource, Message: "The specified queue does not exist: " + queueARN}
	}
	if reason := s.refusal(q, from); reason != "" {
		return &DeliveryError{Reason: NoPermissions, Message: reason}
	}
	out := Outgoing{Body: body, Attributes: map[string]MessageAttribute{}}
	for name, value := range from.MessageAttributes {
		out.Attributes[name] = MessageAttribute{DataType: "String", StringValue: value}
	}
	if err := out.check(q.settings.maxSize); err != nil {
		return &DeliveryError{Message: err.Error()}
	}
	q.accept(out, servicesSender, time.Now())
	return nil
}

// refusal is why a service may not send to a queue; empty if it may.
func (s *State) refusal(q *queue, from Sender) string {
	if from.RoleARN != "" {
		if s.denies(q, "sqs:SendMessage", from.RoleARN) {
			return fmt.Sprintf("The policy of %s denies sqs:SendMessage to %s", q.arn, from.RoleARN)
		}
		return ""
	}
	decision := q.settings.policy.Decide(policy.Request{
		Service:  from.ServicePrincipal,
		Action:   "sqs:SendMessage",
		Resource: q.arn,
		Keys: map[string][]string{
			"aws:SourceArn":             {from.SourceARN},
			"aws:SourceAccount":         {from.SourceAccount},
			"aws:PrincipalIsAWSService": {"true"},
			"aws:PrincipalServiceName":  {from.ServicePrincipal},
			"aws:SecureTransport":       {"true"},
		},
	})
	switch {
	case decision != policy.Allowed:
		return fmt.Sprintf("The policy of %s does not allow %s to perform sqs:SendMessage from %s",
			q.arn, from.ServicePrincipal, from.SourceARN)
	case q.settings.kmsKey == "alias/aws/sqs":
		// The policy of the AWS managed key cannot be changed to allow other services (SQS
		// Developer Guide, "Configuring KMS permissions for AWS services").
		return fmt.Sprintf("%s is encrypted with alias/aws/sqs, which %s may not use", q.arn, from.ServicePrincipal)
	}
	return ""
}

// Sent is the result for the sender of a message.
type Sent struct {
	MessageID        string
	BodyDigest       string
	AttributesDigest string
	TraceDigest      string
}

// Send adds a message to a queue.
func (s *State) Send(name string, out Outgoing, senderID string) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return Sent{}, err
	}
	if err := out.check(q.settings.maxSize); err != nil {
		return Sent{}, err
	}
	return q.accept(out, senderID, time.Now()), nil
}

// accept adds a checked message.
func (q *queue) accept(out Outgoing, senderID string, now time.Time) Sent {
	delay := q.settings.delay
	if out.Delay != nil {
		delay = *out.Delay
	}
	m := &message{
		id:         string(uuid.NewUUID()),
		body:       out.Body,
		attributes: out.Attributes,
		trace:      out.TraceHeader,
		group:      out.GroupID,
		sender:     senderID,
		sent:       now,
		visibleAt:  now.Add(time.Duration(delay) * time.Second),
	}
	q.insert(m, now)
	sent := Sent{MessageID: m.id, BodyDigest: digest(m.body), AttributesDigest: attributesDigest(m.attributes)}
	if m.trace != "" {
		sent.TraceDigest = attributesDigest(map[string]MessageAttribute{
			"AWSTraceHeader": {DataType: "String", StringValue: m.trace},
		})
	}
	return sent
}
