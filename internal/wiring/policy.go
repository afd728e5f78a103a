package wiring

import (
	"encoding/json"
	"fmt"
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
// resource-based policies).
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
