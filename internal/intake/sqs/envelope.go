package sqs

import (
	"encoding/json"
	"errors"
	"strings"
)

// envelope is what all messages have in common (EventBridge User Guide,
// "Events in Amazon EventBridge"). Field names are matched without regard to
// case, as encoding/json does.
type envelope struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Underscore string          `json:"detail_type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Resources  resources       `json:"resources"`
	Detail     json.RawMessage `json:"detail"`

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

// open finds the envelope in a body.
func open(body []byte) (*envelope, error) {
	e, err := parse(body)
	if err == nil && e.Type == "Notification" && e.DetailType == "" && e.Message != "" {
		body = []byte(e.Message)
		e, err = parse(body)
		if err != nil {
			return nil, unreadable("Message", "what SNS wrapped: %v", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if e.DetailType == "" && e.Service == autoScaling {
		// What EventBridge puts into the detail stands at the top here.
		e.Source, e.DetailType, e.Account, e.Detail = autoScaling, e.Event, e.AccountID, body
		if e.DetailType == "" {
			e.DetailType = e.LifecycleTransition
		}
	}
	switch {
	case e.DetailType == "":
		return nil, unreadable("detail-type", "missing: expected EventBridge's whole message; if the rule's target has an input transformer, remove it")
	case e.Source == "":
		return nil, unreadable("source", "missing: expected EventBridge's whole message, with a source such as aws.ec2")
	}
	return e, nil
}

func parse(body []byte) (*envelope, error) {
	var e envelope
	if err := into("", body, &e); err != nil {
		return nil, err
	}
	if e.DetailType == "" {
		e.DetailType = e.Underscore
	}
	return &e, nil
}

// resources takes a list, a single string, or anything else for nothing: the
// ids in it are only needed where detail has none.
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

// into reads the detail.
func (e *envelope) into(detail any) error { return into("detail", e.Detail, detail) }

// into reads a JSON object that stands in the field parent, or the whole body
// where parent is empty. All members that are asked for are strings.
func into(parent string, data []byte, object any) error {
	name := parent
	if parent == "" {
		name = "body"
	}
	if len(data) == 0 {
		return unreadable(name, "missing: expected a JSON object")
	}
	err := json.Unmarshal(data, object)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrongType):
		return unreadable(name, "expected a JSON object: %v", err)
	case wrongType.Field == "":
		return unreadable(name, "found a JSON %s, expected a JSON object", wrongType.Value)
	}
	return unreadable(strings.TrimPrefix(parent+"."+wrongType.Field, "."), "found a JSON %s, expected a string", wrongType.Value)
}
