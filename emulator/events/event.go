package events

import (
	"encoding/json"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Event is an event on a bus. Its JSON is the envelope that targets receive (EventBridge User
// Guide, Events).
type Event struct {
	// The bus sets ID, Account and Region if they are empty, and Time if it is zero.
	ID         string
	DetailType string
	Source     string
	Account    string
	Time       time.Time
	Region     string
	Resources  []string
	Detail     json.RawMessage

	// Milliseconds writes the time in milliseconds, as Auto Scaling does.
	Milliseconds bool
	// ScalarResources writes a single resource as a string and not as a list, as some of AWS's
	// samples do; NoResources omits them, as others do.
	ScalarResources, NoResources bool
}

// MarshalJSON writes the envelope, its fields in AWS's order.
func (e Event) MarshalJSON() ([]byte, error) {
	layout := "2006-01-02T15:04:05Z"
	if e.Milliseconds {
		layout = "2006-01-02T15:04:05.000Z"
	}
	return wire.JSON(struct {
		Version    string          `json:"version"`
		ID         string          `json:"id"`
		DetailType string          `json:"detail-type"`
		Source     string          `json:"source"`
		Account    string          `json:"account"`
		Time       string          `json:"time"`
		Region     string          `json:"region"`
		Resources  any             `json:"resources,omitempty"`
		Detail     json.RawMessage `json:"detail"`
	}{"0", e.ID, e.DetailType, e.Source, e.Account, e.Time.UTC().Format(layout), e.Region, e.resources(), e.Detail})
}

// resources is the envelope's value: nil omits it.
func (e Event) resources() any {
	switch {
	case e.NoResources:
		return nil
	case e.ScalarResources && len(e.Resources) == 1:
		return e.Resources[0]
	case e.Resources == nil:
		return []string{}
	default:
		return e.Resources
	}
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
