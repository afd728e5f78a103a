package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// autoScaling is the source in messages that Auto Scaling sends without EventBridge.
const autoScaling = "AWS Auto Scaling"

// instanceIn returns the instance id in a value: the value itself, or the end of an ARN.
func instanceIn(value string) (string, bool) {
	last := strings.TrimSpace(value[strings.LastIndexByte(value, '/')+1:])
	return last, instanceID.MatchString(last)
}

// fold undoes the changes of input transformers to words.
func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// derivedID is the id for messages without a usable one: equal content gives equal ids.
func derivedID(kind, instance string, issued time.Time) string {
	sum := sha256.Sum256([]byte(kind + "\n" + instance + "\n" + issued.UTC().Format(time.RFC3339Nano)))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// resources accepts a list or a single string, and ignores anything else: its ids are needed
// only if the detail has none.
type resources []string

// UnmarshalJSON never fails.
func (r *resources) UnmarshalJSON(data []byte) error {
	var list []any
	var one string
	switch {
	case json.Unmarshal(data, &list) == nil:
		*r = nil
		for _, entry := range list {
			if s, ok := entry.(string); ok {
				*r = append(*r, s)
			}
		}
	case json.Unmarshal(data, &one) == nil:
		*r = resources{one}
	default:
		*r = nil
	}
	return nil
}

// wrapper has the fields of messages that EventBridge did not put into the queue.
type wrapper struct {
	// SNS's wrapper (Amazon SNS Developer Guide, "HTTP/HTTPS notification
	// JSON format"; SQS gets the same).
	Type    string `json:"Type"`
	Message string `json:"Message"`

	// Auto Scaling's own message, without EventBridge (Amazon EC2 Auto
	// Scaling User Guide, "Prepare to add a lifecycle hook").
	Service             string `json:"Service"`
	Event               string `json:"Event"`
	LifecycleTransition string `json:"LifecycleTransition"`
	AccountID           string `json:"AccountId"`
}

// unwrap returns the envelope that SNS wrapped, or that of Auto Scaling's own message, which
// has EventBridge's detail at the top level. Any other envelope it returns as it is.
func unwrap(e *envelope, body []byte) (*envelope, error) {
	if e.Type == "Notification" && e.DetailType == "" && e.Message != "" {
		body = []byte(e.Message)
		var err error
		if e, err = parse(body); err != nil {
			return nil, unreadable("Message", "what SNS wrapped: %v", err)
		}
	}
	if e.DetailType == "" && e.Service == autoScaling {
		e.Source, e.DetailType, e.Account, e.Detail = autoScaling, e.Event, e.AccountID, body
		if e.DetailType == "" {
			e.DetailType = e.LifecycleTransition
		}
	}
	return e, nil
}
