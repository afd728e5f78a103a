package events

import (
	"encoding/json"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"
)

// Event is what is put on a bus. Its JSON is the envelope in which EventBridge hands
// it to targets (EventBridge User Guide, Events).
type Event struct {
	// ID, Account and Region are stamped by the bus when they are empty, Time when
	// it is zero.
	ID         string
	DetailType string
	Source     string
	Account    string
	Time       time.Time
	Region     string
	Resources  []string
	Detail     json.RawMessage
}

// MarshalJSON writes the envelope, its fields in AWS's order and its time in whole
// seconds.
func (e Event) MarshalJSON() ([]byte, error) {
	resources := e.Resources
	if resources == nil {
		resources = []string{}
	}
	return wire.JSON(struct {
		Version    string          `json:"version"`
		ID         string          `json:"id"`
		DetailType string          `json:"detail-type"`
		Source     string          `json:"source"`
		Account    string          `json:"account"`
		Time       string          `json:"time"`
		Region     string          `json:"region"`
		Resources  []string        `json:"resources"`
		Detail     json.RawMessage `json:"detail"`
	}{"0", e.ID, e.DetailType, e.Source, e.Account, e.Time.UTC().Format("2006-01-02T15:04:05Z"),
		e.Region, resources, e.Detail})
}

// Detail encodes the detail of an event from a struct or map of plain values. What
// does not encode becomes null.
func Detail(v any) json.RawMessage {
	b, err := wire.JSON(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
