package doctor

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// sampleEvent is an event that AWS sends. It stands for a kind of notice that the
// queue should receive.
type sampleEvent struct {
	// name is the sample's name, with the value of the varied field.
	name string
	kind string
	json []byte

	event *pattern.Event
	// fixed are the fields whose values define this example.
	fixed []string
}

// sampleVariant describes how to derive examples from a sample.
type sampleVariant struct {
	sample string
	kind   string
	// field is set to each of the values. If it is empty, the sample is used as it
	// is.
	field  string
	values []string
}

// variants are all kinds of notices that EventBridge delivers, in each relevant
// shape. Events of AWS Health are about EC2: those of other services name no
// instance.
func variants() []sampleVariant {
	return []sampleVariant{
		{"spot-interruption-warning", notice.KindSpotInterruption, "detail.instance-action", []string{"terminate", "stop", "hibernate"}},
		{"rebalance-recommendation", notice.KindRebalanceRecommendation, "", nil},
		{"instance-state-change", notice.KindInstanceStateChange, "detail.state",
			[]string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated}},
		{"health-event", notice.KindScheduledChange, "detail.eventTypeCategory", []string{"scheduledChange"}},
		{"health-event", notice.KindHealthIssue, "detail.eventTypeCategory", []string{"issue"}},
		{"capacity-reservation-interruption", notice.KindCapacityReservationInterruption, "", nil},
		{"capacity-block-expiration", notice.KindCapacityBlockExpiration, "", nil},
		{"terminate-lifecycle-action", notice.KindAutoScalingTermination, "", nil},
		{"cloudtrail-api-call", notice.KindLifecycleActionFailure, "", nil},
	}
}

// fixedFields are the fields that define a sample in all its variants.
func fixedFields(sample string) []string {
	switch sample {
	case "health-event":
		return []string{"detail.service", "detail.backupEvent"}
	case "cloudtrail-api-call":
		return []string{"detail.eventSource", "detail.eventName"}
	}
	return nil
}

// The account and the region of the samples.
const (
	sampleAccount = "210987654321"
	sampleRegion  = "eu-west-1"
)

// sampleEvents returns the examples for an account and region. If these are unknown,
// a pattern may require any account and region.
func sampleEvents(account, region string) []sampleEvent {
	var fixed []string
	localize := func(text string) string { return text }
	if account != "" && region != "" {
		fixed = []string{"account", "region"}
		localize = strings.NewReplacer(sampleAccount, account, sampleRegion, region).Replace
	}
	samples := map[string]string{}
	for _, s := range pattern.Samples() {
		samples[s.Name] = localize(string(s.JSON))
	}
	var all []sampleEvent
	for _, v := range variants() {
		also := slices.Concat(fixed, fixedFields(v.sample))
		if v.field == "" {
			all = appendSampleEvent(all, v, samples[v.sample], "", also)
		}
		for _, value := range v.values {
			all = appendSampleEvent(all, v, samples[v.sample], value, append(slices.Clone(also), v.field))
		}
	}
	return all
}

// appendSampleEvent derives an example from a sample. A test verifies that no example
// is skipped.
func appendSampleEvent(all []sampleEvent, v sampleVariant, sample, value string, fixed []string) []sampleEvent {
	var root map[string]any
	if json.Unmarshal([]byte(sample), &root) != nil {
		return all
	}
	name := v.sample
	if value != "" {
		setField(root, strings.Split(v.field, "."), value)
		name += " (" + value + ")"
	}
	text, err := json.Marshal(root)
	if err != nil {
		return all
	}
	event, err := pattern.Decode(text)
	if err != nil {
		return all
	}
	return append(all, sampleEvent{name: name, kind: v.kind, json: text, event: event, fixed: fixed})
}

func setField(object map[string]any, path []string, value string) {
	if len(path) == 1 {
		object[path[0]] = value
		return
	}
	if next, ok := object[path[0]].(map[string]any); ok {
		setField(next, path[1:], value)
	}
}

// kindsOf returns the kinds of the examples that a pattern could match.
func kindsOf(p *pattern.Pattern, examples []sampleEvent) []string {
	var kinds []string
	for _, c := range examples {
		if p.CouldMatch(c.event, c.fixed...) && !slices.Contains(kinds, c.kind) {
			kinds = append(kinds, c.kind)
		}
	}
	return kinds
}
