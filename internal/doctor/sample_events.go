package doctor

import (
	"encoding/json"
	"fmt"
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
	// other is an event of the same kind about another instance.
	other *pattern.Event
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

// sampleEvents returns the examples for an account and region. If one is unknown, a
// pattern may require any.
func sampleEvents(account, region string) []sampleEvent {
	var fixed, replace []string
	if account != "" {
		fixed, replace = append(fixed, "account"), append(replace, sampleAccount, account)
	}
	if region != "" {
		fixed, replace = append(fixed, "region"), append(replace, sampleRegion, region)
	}
	localize := strings.NewReplacer(replace...).Replace
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
	other, err := anotherEvent(root, append(slices.Clone(fixed), v.field))
	if err != nil {
		return all
	}
	return append(all, sampleEvent{name: name, kind: v.kind, json: text, event: event, other: other, fixed: fixed})
}

// anotherEvent returns an event of the same kind about another instance, at another
// time: it has other ids and times than the example.
func anotherEvent(root map[string]any, fixed []string) (*pattern.Event, error) {
	text, err := json.Marshal(changeIDs(root, "", fixed))
	if err != nil {
		return nil, fmt.Errorf("writing a sample: %w", err)
	}
	return pattern.Decode(text)
}

// changeIDs changes the ids and times of a value. It keeps accounts, regions and the
// values of closed sets, which have no digits.
func changeIDs(v any, path string, fixed []string) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, inner := range v {
			all[name] = changeIDs(inner, strings.TrimPrefix(path+"."+name, "."), fixed)
		}
		return all
	case []any:
		all := []any{}
		for _, inner := range v {
			all = append(all, changeIDs(inner, path, fixed))
		}
		return all
	case string:
		if !slices.Contains(fixed, path) && isID(path) {
			at := strings.LastIndex(v, "/") + 1 // an ARN names a region before
			return v[:at] + otherDigits.Replace(v[at:])
		}
	}
	return v
}

// isID reports whether each event or each instance has its own value of a field.
func isID(path string) bool {
	switch path {
	case "id", "time", "resources", "detail.instance-id", "detail.EC2InstanceId", "detail.LifecycleActionToken",
		"detail.eventArn", "detail.startTime", "detail.endTime", "detail.affectedEntities.entityValue":
		return true
	}
	return false
}

// otherDigits replaces each digit by another.
var otherDigits = strings.NewReplacer("0", "1", "1", "2", "2", "3", "3", "4", "4", "5", "5", "6", "6", "7", "7", "8", "8", "9", "9", "0")

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
