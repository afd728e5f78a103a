package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Limits of PutEvents (EventBridge User Guide, Sending events with PutEvents). The
// size was 256 KB until January 2026.
const (
	maxRequestSize = 1 << 20
	maxDetailType  = 128
	timeSize       = 14 // size of a Time in the size of an entry
)

type entry struct {
	Time         *wire.Time
	Source       string
	DetailType   string
	Detail       string
	Resources    []string
	EventBusName string
}

func (e entry) size() int {
	n := len(e.Source) + len(e.DetailType) + len(e.Detail)
	if e.Time != nil {
		n += timeSize
	}
	for _, r := range e.Resources {
		n += len(r)
	}
	return n
}

func (e entry) complete() bool {
	return e.Source != "" && e.DetailType != "" && e.Detail != ""
}

// refuse returns why an entry is rejected; nil: it is accepted.
func (e entry) refuse() *entryResult {
	refused := func(code, format string, args ...any) *entryResult {
		return &entryResult{ErrorCode: code, ErrorMessage: fmt.Sprintf(format, args...)}
	}
	for _, p := range []struct{ name, value string }{
		{"Source", e.Source}, {"DetailType", e.DetailType}, {"Detail", e.Detail},
	} {
		if p.value == "" {
			return refused("InvalidArgument", "Parameter %s is not valid. Reason: %s is a required argument.", p.name, p.name)
		}
	}
	var object map[string]json.RawMessage
	switch {
	case utf8.RuneCountInString(e.DetailType) > maxDetailType:
		return refused("InvalidArgument", "Parameter DetailType is not valid. Reason: it is longer than %d characters.", maxDetailType)
	case strings.HasPrefix(e.Source, "aws."):
		return refused("NotAuthorizedForSourceException", "Not authorized for the source.")
	case json.Unmarshal([]byte(e.Detail), &object) != nil || object == nil:
		return refused("MalformedDetail", "Detail is malformed.")
	default:
		return nil
	}
}

type putEventsInput struct{ Entries []entry }

type entryResult struct {
	EventID      string `json:"EventId,omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

type putEventsOutput struct {
	FailedEntryCount int
	Entries          []entryResult
}

func (a *api) putEvents(_ context.Context, _ *wire.Request, in *putEventsInput) (*putEventsOutput, error) {
	if err := checkEntries(in.Entries); err != nil {
		return nil, err
	}
	out := &putEventsOutput{}
	for _, e := range in.Entries {
		if refused := e.refuse(); refused != nil {
			out.FailedEntryCount++
			out.Entries = append(out.Entries, *refused)
			continue
		}
		event := Event{Source: e.Source, DetailType: e.DetailType, Resources: e.Resources, Detail: json.RawMessage(e.Detail)}
		if e.Time != nil {
			event.Time = e.Time.Time
		}
		out.Entries = append(out.Entries, entryResult{EventID: a.state.publish(busName(e.EventBusName), event)})
	}
	return out, nil
}

// checkEntries rejects whole requests.
func checkEntries(entries []entry) error {
	if n := len(entries); n < 1 || n > maxPerCall {
		return constraint(fmt.Sprintf("[%d entries]", n), "entries", "have length between 1 and 10")
	}
	size, complete := 0, false
	for _, e := range entries {
		size += e.size()
		complete = complete || e.complete()
	}
	switch {
	case size > maxRequestSize:
		return validation("Total size of the entries in the request is over the limit.")
	case !complete:
		return validation("Entries need Source, DetailType and Detail; no entry has all of them.")
	}
	return nil
}
