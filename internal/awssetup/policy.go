package awssetup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// policyDocument is a queue policy in IAM's format.
type policyDocument struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid    string
	Effect string
	// Principal is "*", or a map from the kind of principal to its name.
	Principal any
	Action    string
	Resource  string
	Condition conditions `json:",omitempty"`
}

// conditions are the conditions of a statement, by operator and key.
type conditions = map[string]map[string]any

// queuePolicy allows the rules of the wiring, or its topic, to write to a queue. EventBridge cannot
// assume a role for SQS, so this policy is its only permission (EventBridge User Guide, "Using
// resource-based policies"). The conditions on rules and account exclude rules of other accounts,
// which could also target the queue.
func (w Wiring) queuePolicy(queueARN string, more ...statement) (string, error) {
	var allowed []statement
	if rules := w.ruleARNs(); len(rules) > 0 {
		allowed = append(allowed, statement{
			Sid:       "LifeboatRules",
			Effect:    "Allow",
			Principal: map[string]string{"Service": "events.amazonaws.com"},
			Action:    "sqs:SendMessage",
			Resource:  queueARN,
			Condition: conditions{
				"ArnEquals":    {"aws:SourceArn": rules},
				"StringEquals": {"aws:SourceAccount": w.Account},
			},
		})
	}
	if topics := w.topicSenders(); len(topics) > 0 {
		allowed = append(allowed, allowTopics(topics, queueARN))
	}
	if len(allowed) == 0 {
		return "", nil
	}
	text, err := json.Marshal(policyDocument{
		Version:   "2012-10-17",
		Statement: slices.Concat(allowed, []statement{denyPlainHTTP(queueARN)}, more),
	})
	if err != nil {
		return "", fmt.Errorf("encoding the queue policy: %w", err)
	}
	return string(text), nil
}

// ruleARNs are the rules that may send to the queue. Those of a topic send to the topic.
func (w Wiring) ruleARNs() []string {
	rules := make([]string, 0, len(w.Rules)+len(w.Replaces))
	for _, r := range w.Rules {
		if w.Topic == "" {
			rules = append(rules, w.RuleARN(r.Name))
		}
	}
	for _, name := range w.Replaces {
		if arn := w.RuleARN(name); !slices.Contains(rules, arn) {
			rules = append(rules, arn)
		}
	}
	return rules
}

// denyPlainHTTP refuses requests without TLS (SQS Developer Guide, "Amazon SQS security best
// practices"). AWS services use TLS.
func denyPlainHTTP(queueARN string) statement {
	return statement{
		Sid: "DenyPlainHTTP", Effect: "Deny", Principal: "*", Action: "sqs:*", Resource: queueARN,
		Condition: conditions{"Bool": {"aws:SecureTransport": "false"}},
	}
}

// denyOtherSenders refuses everyone except the rules or the topic, and the senders. An identity policy of the
// account could otherwise let its principal forge notices: such a policy needs no Allow here.
//
// The statement compares aws:SourceArn, which the Allow for the rules needs too. So it cannot refuse
// an event that the Allow lets through. Requests of principals have no aws:SourceArn, and negated
// operators hold without the key (IAM User Guide, "Condition operators"). It does not use
// aws:PrincipalServiceName: the EventBridge User Guide does not say that deliveries have that key.
func (w Wiring) denyOtherSenders() statement {
	s := statement{
		Sid: "DenyOtherSenders", Effect: "Deny", Principal: "*", Action: "sqs:SendMessage", Resource: w.QueueARN(),
		Condition: conditions{"ArnNotEquals": {"aws:SourceArn": append(w.ruleARNs(), w.topicSenders()...)}},
	}
	if len(w.Senders) > 0 {
		s.Condition["ArnNotLike"] = map[string]any{"aws:PrincipalArn": w.Senders}
	}
	return s
}

// Names of SQS attributes that this package handles separately.
const (
	attributePolicy       = string(sqstypes.QueueAttributeNamePolicy)
	attributeRedrive      = string(sqstypes.QueueAttributeNameRedrivePolicy)
	attributeRedriveAllow = string(sqstypes.QueueAttributeNameRedriveAllowPolicy)
	attributeRetention    = string(sqstypes.QueueAttributeNameMessageRetentionPeriod)
	attributeVisibility   = string(sqstypes.QueueAttributeNameVisibilityTimeout)
	attributeWait         = string(sqstypes.QueueAttributeNameReceiveMessageWaitTimeSeconds)
	attributeDelay        = string(sqstypes.QueueAttributeNameDelaySeconds)
	attributeSSE          = string(sqstypes.QueueAttributeNameSqsManagedSseEnabled)
	attributeKMSKey       = string(sqstypes.QueueAttributeNameKmsMasterKeyId)
	attributeMaxSize      = string(sqstypes.QueueAttributeNameMaximumMessageSize)
)

// minMessageSize is the smallest acceptable MaximumMessageSize, in bytes. It was the
// largest event of EventBridge for years. New queues accept up to 1 MiB in regions
// that support it (SQS Developer Guide, "Amazon SQS message quotas").
const minMessageSize = "262144"

// QueueAttributes returns the attributes of the queue in SQS's format. An empty value
// means that the attribute must not be set.
func (w Wiring) QueueAttributes() (map[string]string, error) {
	attributes, err := w.attributes(w.Queue, w.QueueARN(), w.denyOtherSenders())
	if err != nil {
		return nil, err
	}
	redrive, err := json.Marshal(struct {
		Target string `json:"deadLetterTargetArn"`
		Max    int    `json:"maxReceiveCount"`
	}{w.DeadLetterARN(), w.Queue.MaxReceives})
	if err != nil {
		return nil, fmt.Errorf("encoding the redrive policy: %w", err)
	}
	attributes[attributeRedrive] = string(redrive)
	return attributes, nil
}

// DeadLetterAttributes returns the attributes of the dead-letter queue. Two senders
// use it: the rules for undeliverable events, and the queue for unreadable messages.
// SQS itself moves the latter, which the redrive allow policy permits. The policy denies
// no senders: the documentation does not say whether a Deny applies to these moves.
func (w Wiring) DeadLetterAttributes() (map[string]string, error) {
	attributes, err := w.attributes(w.DeadLetter, w.DeadLetterARN())
	if err != nil {
		return nil, err
	}
	allow, err := json.Marshal(struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}{"byQueue", []string{w.QueueARN()}})
	if err != nil {
		return nil, fmt.Errorf("encoding the redrive allow policy: %w", err)
	}
	attributes[attributeRedriveAllow] = string(allow)
	return attributes, nil
}

// attributes returns the attributes of both queues. They use SSE-SQS. The AWS managed
// KMS key cannot work, because its policy does not allow EventBridge to use it
// (EventBridge User Guide, "Encrypting SQS targets"). A customer managed key works
// only if its policy does.
func (w Wiring) attributes(q Queue, arn string, more ...statement) (map[string]string, error) {
	policy, err := w.queuePolicy(arn, more...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{attributePolicy: policy, attributeSSE: "true", attributeDelay: "0"}
	seconds := func(attribute string, d time.Duration) {
		if d > 0 {
			out[attribute] = strconv.Itoa(int(d / time.Second))
		}
	}
	seconds(attributeRetention, q.Retention)
	seconds(attributeVisibility, q.Visibility)
	seconds(attributeWait, q.Wait)
	return out, nil
}
