package wiring

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// policyDocument is a queue policy, as IAM reads it.
type policyDocument struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Principal map[string]string
	Action    string
	Resource  string
	Condition map[string]map[string]any
}

// queuePolicy lets the rules of the wiring, and nothing else that is not of the
// account itself, write to a queue. EventBridge has no role to write to SQS
// with: this policy is what allows it (EventBridge User Guide, Using
// resource-based policies). Naming rules and account keeps other accounts' rules
// out, which anybody could point at the queue.
func (w Wiring) queuePolicy(queueARN string) (string, error) {
	rules := make([]string, 0, len(w.Rules))
	for _, r := range w.Rules {
		rules = append(rules, w.RuleARN(r.Name))
	}
	if len(rules) == 0 {
		return "", nil
	}
	text, err := json.Marshal(policyDocument{
		Version: "2012-10-17",
		Statement: []statement{{
			Sid:       "LifeboatRules",
			Effect:    "Allow",
			Principal: map[string]string{"Service": "events.amazonaws.com"},
			Action:    "sqs:SendMessage",
			Resource:  queueARN,
			Condition: map[string]map[string]any{
				"ArnEquals":    {"aws:SourceArn": rules},
				"StringEquals": {"aws:SourceAccount": w.Account},
			},
		}},
	})
	if err != nil {
		return "", fmt.Errorf("encoding the queue policy: %w", err)
	}
	return string(text), nil
}

// Names of SQS attributes that are of more interest than others.
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

// leastMaxSize is how large a message may at least have to be, in bytes: the
// largest event that EventBridge sent for years. New queues take up to 1 MiB,
// where the region does (SQS Developer Guide, "Amazon SQS message quotas").
const leastMaxSize = "262144"

// QueueAttributes are the attributes of the queue, as SQS names and writes them.
// An empty value means that there is to be none.
func (w Wiring) QueueAttributes() (map[string]string, error) {
	attributes, err := w.attributes(w.Queue, w.QueueARN())
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

// DeadLetterAttributes are those of the dead-letter queue. Two may send to it:
// the rules, what they could not deliver, and the queue, what nobody could read;
// SQS moves the latter itself, which is allowed by a policy of its own.
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

// attributes are what both queues have. They are encrypted with keys of SQS' own:
// the AWS managed KMS key cannot work, since its policy does not let EventBridge
// use it (EventBridge User Guide, Encrypting SQS targets), and a key of one's own
// works only if its policy does.
func (w Wiring) attributes(q Queue, arn string) (map[string]string, error) {
	policy, err := w.queuePolicy(arn)
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
