package cloudtrail

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

const (
	// usualDelay is how long after a call its event is in the history (AWS CloudTrail User
	// Guide, "CloudTrail event history": about five minutes on average).
	usualDelay = 5 * time.Minute
	// lookupsPerSecond is the limit of an account in a region, and maxPage the largest page
	// (AWS CloudTrail API Reference, LookupEvents).
	lookupsPerSecond = 2
	maxPage          = 50
	// maxHistory bounds the memory. AWS keeps 90 days.
	maxHistory = 5000
)

// entry is an event of the history.
type entry struct {
	at     time.Time
	who    wire.Identity
	record record
}

// SetDelay sets how long after a call its event is in the history; five minutes at first.
func (s *State) SetDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// remember adds an event to the history, and reports whether a trail logs it too.
func (s *State) remember(e entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.history) == maxHistory {
		s.history = slices.Delete(s.history, 0, maxHistory/10)
	}
	s.history = append(s.history, e)
	return s.logging
}

// Service is the CloudTrail API on the wire.
func Service(s *State) wire.Service {
	return wire.Service{
		Name:         "cloudtrail",
		Protocol:     wire.JSON11,
		TargetPrefix: "CloudTrail_20131101",
		Actions:      map[string]wire.Action{"LookupEvents": wire.Do(s.lookupEvents)},
	}
}

type attribute struct{ AttributeKey, AttributeValue string }

type lookup struct {
	LookupAttributes []attribute
	StartTime        wire.Time
	EndTime          wire.Time
	EventCategory    string
	MaxResults       *int
	NextToken        string
}

type page struct {
	Events    []event
	NextToken string `json:",omitempty"`
}

type event struct {
	EventID     string `json:"EventId"`
	EventName   string
	ReadOnly    string
	AccessKeyID string `json:"AccessKeyId"`
	EventTime   wire.Time
	EventSource string
	Username    string
	Resources   []struct{}
	// CloudTrailEvent is the whole record, as a string of JSON.
	CloudTrailEvent string
}

// attributes are what events can be looked up by; resources are not recorded here.
var attributes = map[string]func(e *entry) string{
	"EventId":      func(e *entry) string { return e.record.EventID },
	"EventName":    func(e *entry) string { return e.record.EventName },
	"EventSource":  func(e *entry) string { return e.record.EventSource },
	"ReadOnly":     func(e *entry) string { return fmt.Sprint(e.record.ReadOnly) },
	"AccessKeyId":  func(e *entry) string { return e.record.UserIdentity.AccessKeyID },
	"Username":     func(e *entry) string { return path.Base(e.who.ARN) },
	"ResourceName": func(*entry) string { return "" },
	"ResourceType": func(*entry) string { return "" },
}

func (in *lookup) check() error {
	switch {
	case len(in.LookupAttributes) > 1:
		return wire.Errorf("InvalidLookupAttributesException", "You can use only one lookup attribute.")
	case len(in.LookupAttributes) == 1 && (attributes[in.LookupAttributes[0].AttributeKey] == nil || in.LookupAttributes[0].AttributeValue == ""):
		return wire.Errorf("InvalidLookupAttributesException", "Lookup attribute %q is not valid.", in.LookupAttributes[0].AttributeKey)
	case in.MaxResults != nil && (*in.MaxResults < 1 || *in.MaxResults > maxPage):
		return wire.Errorf("InvalidMaxResultsException", "MaxResults must be from 1 to %d.", maxPage)
	case !in.StartTime.IsZero() && !in.EndTime.IsZero() && in.EndTime.Before(in.StartTime.Time):
		return wire.Errorf("InvalidTimeRangeException", "The start time must be before the end time.")
	case in.EventCategory != "" && !strings.EqualFold(in.EventCategory, "insight"):
		return wire.Errorf("InvalidEventCategoryException", "Event category %q is not valid.", in.EventCategory)
	}
	return nil
}

// fits reports whether an event was looked up.
func (in *lookup) fits(e *entry) bool {
	at := e.at.Truncate(time.Second) // the time of a record has whole seconds
	for _, a := range in.LookupAttributes {
		if attributes[a.AttributeKey](e) != a.AttributeValue {
			return false
		}
	}
	return in.EventCategory == "" && !at.Before(in.StartTime.Time) && (in.EndTime.IsZero() || !at.After(in.EndTime.Time))
}

// lookupEvents returns events of the history, the latest first.
func (s *State) lookupEvents(_ context.Context, _ *wire.Request, in *lookup) (*page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.bucket.Take(now) {
		return nil, wire.Errorf("ThrottlingException", "Rate exceeded")
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	before, err := in.position()
	if err != nil {
		return nil, err
	}
	size := maxPage
	if in.MaxResults != nil {
		size = *in.MaxResults
	}
	out := &page{Events: []event{}}
	last := ""
	for i := len(s.history) - 1; i >= 0; i-- {
		e := &s.history[i]
		if before != "" { // the page begins after this event
			if e.record.EventID == before {
				before = ""
			}
			continue
		}
		if now.Sub(e.at) < s.delay || !in.fits(e) {
			continue
		}
		if len(out.Events) == size {
			out.NextToken = in.token(last)
			break
		}
		text, err := wire.JSON(e.record)
		if err != nil {
			return nil, err
		}
		last = e.record.EventID
		out.Events = append(out.Events, event{
			EventID: e.record.EventID, EventName: e.record.EventName, ReadOnly: attributes["ReadOnly"](e), AccessKeyID: e.record.UserIdentity.AccessKeyID,
			EventTime: wire.Time{Time: e.at.Truncate(time.Second)}, EventSource: e.record.EventSource, Username: attributes["Username"](e),
			Resources: []struct{}{}, CloudTrailEvent: string(text),
		})
	}
	return out, nil
}

// cursor is the content of a token: the last event of a page, and the parameters, which must
// be the same for the next page (AWS CloudTrail API Reference, LookupEvents).
type cursor struct {
	After, Parameters string
}

func (in *lookup) parameters() string {
	return fmt.Sprint(in.LookupAttributes, in.StartTime.Unix(), in.EndTime.Unix(), in.EventCategory)
}

func (in *lookup) token(after string) string {
	text, err := json.Marshal(cursor{after, in.parameters()})
	if err != nil {
		panic(err) // two strings
	}
	return base64.StdEncoding.EncodeToString(text)
}

// position returns the event after which the page begins; empty: the first.
func (in *lookup) position() (after string, err error) {
	if in.NextToken == "" {
		return "", nil
	}
	var c cursor
	text, err := base64.StdEncoding.DecodeString(in.NextToken)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || c.After == "" || c.Parameters != in.parameters() {
		return "", wire.Errorf("InvalidNextTokenException", "The token is not valid, or was issued for other parameters.")
	}
	return c.After, nil
}
