package events

import (
	"errors"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
)

// principal is EventBridge's service principal in queue policies.
const principal = "events.amazonaws.com"

// Delivery records one attempt to deliver an event to a target.
type Delivery struct {
	At                  time.Time
	Rule, Target, Queue string // rule name, target id, queue ARN
	EventID             string
	// Failure says why it failed, beginning with EventBridge's error code if it has one
	// (NO_PERMISSIONS, NO_RESOURCE); empty: it succeeded.
	Failure string
	// DeadLettered reports whether the event was sent to the target's dead-letter queue.
	DeadLettered bool
}

// delivery is a waiting delivery.
type delivery struct {
	rule   *rule
	target Target
	event  []byte
	id     string
	due    time.Time
}

// perform delivers an event to a target. Failures are final: EventBridge does not retry if
// permission or the queue is missing (EventBridge User Guide, Retry policy), and the emulator has
// no other failures.
func (s *State) perform(d delivery) {
	record := Delivery{
		At: time.Now(), Rule: d.rule.name, Target: d.target.ID, Queue: d.target.ARN, EventID: d.id,
	}
	body, err := d.target.body(d.event, d.rule.arn, d.rule.name, record.At)
	if err == nil {
		err = s.deliver(d.target.ARN, body, s.sender(d, nil))
	}
	var bury error
	if err != nil {
		record.Failure = failure(err)
		if d.target.DeadLetterARN != "" {
			bury = s.deliver(d.target.DeadLetterARN, string(d.event), s.sender(d, deadLetterAttributes(d, err)))
			record.DeadLettered = bury == nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = keep(s.deliveries, record)
	d.rule.stats.count(record, bury)
}

func (st *Stats) count(d Delivery, bury error) {
	st.Invocations++
	if d.Failure == "" {
		return
	}
	st.FailedInvocations++
	st.LastFailure = d.Failure
	switch {
	case d.DeadLettered:
		st.SentToDLQ++
	case bury != nil:
		st.FailedToDLQ++
		st.LastFailure += "; dead-letter queue: " + failure(bury)
	}
}

func (s *State) sender(d delivery, attributes map[string]string) sqs.Sender {
	return sqs.Sender{
		ServicePrincipal: principal, SourceARN: d.rule.arn, SourceAccount: s.scope.Account,
		MessageAttributes: attributes,
	}
}

// deadLetterAttributes are the message attributes of an event in the dead-letter queue (EventBridge
// User Guide, Using dead-letter queues).
func deadLetterAttributes(d delivery, err error) map[string]string {
	attributes := map[string]string{
		"RULE_ARN": d.rule.arn, "TARGET_ARN": d.target.ARN, "ERROR_MESSAGE": err.Error(),
	}
	if refused := (*sqs.DeliveryError)(nil); errors.As(err, &refused) {
		attributes["ERROR_MESSAGE"] = refused.Message
		if refused.Reason != "" {
			attributes["ERROR_CODE"] = refused.Reason
		}
	}
	return attributes
}

func failure(err error) string {
	refused := (*sqs.DeliveryError)(nil)
	switch {
	case !errors.As(err, &refused):
		return err.Error()
	case refused.Reason == "":
		return refused.Message
	default:
		return refused.Reason + ": " + refused.Message
	}
}

// Deliveries is the last 1,000 delivery attempts, oldest first.
func (s *State) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}
