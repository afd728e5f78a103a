package diagnose

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/pattern"
)

// canonical is an event that AWS sends, as an example of a kind of notice that
// the queue should bring.
type canonical struct {
	// name is that of the sample, and what is particular about it.
	name string
	kind string
	json []byte

	event *pattern.Event
	// fixed are the fields whose values make it this example and no other.
	fixed []string
}

// variant is how an example is made of a sample.
type variant struct {
	sample string
	kind   string
	// field takes each of the values in turn; without it the sample stands as it
	// is.
	field  string
	values []string
}

// variants are every kind of notice that comes through EventBridge, in each shape
// that matters. Those of AWS Health are about EC2: what it says of other services
// names no instance.
func variants() []variant {
	return []variant{
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

// fixedFields are the fields of some samples that belong to what they are,
// whatever else varies.
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

// canonicals are the examples as they would be sent in an account and region.
// Where these are not known, patterns may ask for any.
func canonicals(account, region string) []canonical {
	var fixed []string
	swap := func(text string) string { return text }
	if account != "" && region != "" {
		fixed = []string{"account", "region"}
		swap = strings.NewReplacer(sampleAccount, account, sampleRegion, region).Replace
	}
	samples := map[string]string{}
	for _, s := range pattern.Samples() {
		samples[s.Name] = swap(string(s.JSON))
	}
	var all []canonical
	for _, v := range variants() {
		also := slices.Concat(fixed, fixedFields(v.sample))
		if v.field == "" {
			all = appendCanonical(all, v, samples[v.sample], "", also)
		}
		for _, value := range v.values {
			all = appendCanonical(all, v, samples[v.sample], value, append(slices.Clone(also), v.field))
		}
	}
	return all
}

// appendCanonical makes an example of a sample. A test holds that none is left
// out.
func appendCanonical(all []canonical, v variant, sample, value string, fixed []string) []canonical {
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
	return append(all, canonical{name: name, kind: v.kind, json: text, event: event, fixed: fixed})
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

// kindsOf are the kinds of the examples that a pattern could match.
func kindsOf(p *pattern.Pattern, examples []canonical) []string {
	var kinds []string
	for _, c := range examples {
		if p.CouldMatch(c.event, c.fixed...) && !slices.Contains(kinds, c.kind) {
			kinds = append(kinds, c.kind)
		}
	}
	return kinds
}
