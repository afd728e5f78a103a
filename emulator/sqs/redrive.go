package sqs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redrivePolicy says when messages move to a dead-letter queue, and to which.
type redrivePolicy struct {
	Target string       `json:"deadLetterTargetArn"`
	Max    receiveCount `json:"maxReceiveCount"`
}

// to reports whether messages go to the queue with that ARN.
func (p redrivePolicy) to(arn string) bool { return p.Target != "" && p.Target == arn }

// receiveCount is a number that clients also write as a string.
type receiveCount int

// UnmarshalJSON implements json.Unmarshaler.
func (c *receiveCount) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(string(bytes.Trim(b, `"`)))
	*c = receiveCount(n)
	return err
}

// redriveAllowPolicy says which queues may have this one as their dead-letter
// queue; empty means all.
type redriveAllowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns,omitempty"`
}

func (p redriveAllowPolicy) allows(source string) bool {
	switch p.Permission {
	case "denyAll":
		return false
	case "byQueue":
		return slices.Contains(p.Sources, source)
	}
	return true
}

// setRedrive reads the RedrivePolicy of the queue with that ARN. The lock must
// be held.
func (s *State) setRedrive(to *settings, arn, value string) error {
	to.redrive = redrivePolicy{}
	if value == "" {
		return nil
	}
	invalid := func(reason string) error {
		return badParameter("Value %s for parameter RedrivePolicy is invalid. Reason: %s", value, reason)
	}
	var p redrivePolicy
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return invalid("Redrive policy is not a valid JSON map.")
	}
	switch {
	case p.Target == "":
		return invalid("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	case p.Max < 1 || p.Max > 1000:
		return invalid("Invalid value for maxReceiveCount: must be between 1 and 1000.")
	}
	target := s.byARN(p.Target)
	switch {
	case p.Target == arn:
		return invalid("Dead letter target cannot be the queue itself.")
	case target == nil:
		return invalid("Dead letter target does not exist.")
	case !target.settings.redriveAllow.allows(arn):
		return invalid("Dead letter target's RedriveAllowPolicy does not allow this queue.")
	}
	to.redrive = p
	return nil
}

func (s *settings) setRedriveAllow(value string) error {
	s.redriveAllow = redriveAllowPolicy{}
	if value == "" {
		return nil
	}
	var p redriveAllowPolicy
	if err := json.Unmarshal([]byte(value), &p); err != nil || !slices.Contains([]string{"allowAll", "denyAll", "byQueue"}, p.Permission) {
		return badParameter("Value %s for parameter RedriveAllowPolicy is invalid. "+
			"Reason: redrivePermission must be one of allowAll, denyAll, byQueue.", value)
	}
	if (p.Permission == "byQueue") != (len(p.Sources) > 0) || len(p.Sources) > 10 {
		return badParameter("Value %s for parameter RedriveAllowPolicy is invalid. "+
			"Reason: byQueue, and it alone, needs 1 to 10 sourceQueueArns.", value)
	}
	s.redriveAllow = p
	return nil
}

// giveUp moves a message to the dead-letter queue if it was received too often and there is such a
// queue. It keeps its id and its time of sending, so that retention there counts from the first
// sending. The lock must be held.
func (s *State) giveUp(q *queue, m *message, now time.Time) bool {
	redrive := q.settings.redrive
	if redrive.Target == "" || m.receivesHere < int(redrive.Max) {
		return false
	}
	dead := s.byARN(redrive.Target)
	if dead == nil {
		return false
	}
	q.remove(m)
	m.source, m.receivesHere, m.visibleAt = q.arn, 0, now
	dead.insert(m, now)
	return true
}

// sourceName is the source queue of a dead letter; empty if not known.
func (m *message) sourceName() string {
	return m.source[strings.LastIndex(m.source, ":")+1:]
}
