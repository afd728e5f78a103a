package pattern

import (
	"bytes"
	"embed"
	"slices"
	"strings"
	"sync"
)

//go:embed samples/*.json
var sampleFiles embed.FS

// Sample is an event that AWS is known to send, with invented ids. The shapes are those of the EC2, Auto Scaling,
// Health and FIS user guides and of the EventBridge schema registry.
type Sample struct {
	// Name identifies the sample, for example spot-interruption-warning.
	Name string `json:"name"`
	// Source and DetailType are those of the event.
	Source     string `json:"source"`
	DetailType string `json:"detailType"`
	// JSON is the event.
	JSON []byte `json:"-"`
}

// Samples returns the catalogue in a fixed order. The caller may modify the result.
func Samples() []Sample {
	var all []Sample
	for _, known := range catalogue() {
		s := known.Sample
		s.JSON = bytes.Clone(s.JSON)
		all = append(all, s)
	}
	return all
}

// knownEvent is a sample together with the known properties of its fields.
type knownEvent struct {
	Sample
	event *Event
	// detailTypes are all names under which AWS sends an event of this shape, including older names and siblings.
	detailTypes []string
	// values are the fields with a closed set of values.
	values map[string][]string
	// open are the objects whose fields AWS does not document; a pattern can test anything there.
	open []string
	// anySource means that every service sends this event.
	anySource bool
}

// shape is the static part of a knownEvent.
type shape struct {
	name      string
	aliases   []string
	values    map[string][]string
	open      []string
	anySource bool
}

// catalogue decodes the embedded samples once.
var catalogue = sync.OnceValue(func() []knownEvent {
	var all []knownEvent
	for _, s := range shapes() {
		data, err := sampleFiles.ReadFile("samples/" + s.name + ".json")
		if err != nil {
			continue // a test verifies that shapes and files agree
		}
		event, err := Decode(data)
		if err != nil {
			continue // likewise
		}
		known := knownEvent{
			Sample: Sample{Name: s.name, JSON: data,
				Source: event.root.get("source").text, DetailType: event.root.get("detail-type").text},
			event: event, values: s.values, open: s.open, anySource: s.anySource,
		}
		known.detailTypes = append([]string{known.DetailType}, s.aliases...)
		all = append(all, known)
	}
	return all
})

func shapes() []shape {
	spotAction := map[string][]string{"detail.instance-action": {"terminate", "stop", "hibernate"}}
	return []shape{
		{name: "spot-interruption-warning", values: spotAction},
		{name: "rebalance-recommendation", aliases: []string{"EC2 Spot Instance Rebalance Recommended"}},
		{name: "instance-state-change", values: map[string][]string{
			"detail.state": {"pending", "running", "stopping", "stopped", "shutting-down", "terminated"}}},
		{name: "health-event", values: healthValues(), open: []string{"detail.eventMetadata", "detail.affectedEntities.tags"}},
		{name: "health-abuse-event", values: healthValues(), open: []string{"detail.eventMetadata", "detail.affectedEntities.tags"}},
		{name: "capacity-reservation-interruption", values: spotAction,
			aliases: []string{"EC2 Interruptible Capacity Reservation Instance Interruption Warning"}},
		{name: "capacity-block-interruption", values: spotAction},
		{name: "capacity-block-expiration", aliases: []string{"Capacity Block Expiration Warning"}},
		{name: "terminate-lifecycle-action", values: lifecycleValues("autoscaling:EC2_INSTANCE_TERMINATING")},
		{name: "launch-lifecycle-action", values: lifecycleValues("autoscaling:EC2_INSTANCE_LAUNCHING")},
		{name: "instance-launch", aliases: []string{"EC2 Instance Launch Unsuccessful"}, open: []string{"detail.Details"}},
		{name: "instance-terminate", aliases: []string{"EC2 Instance Terminate Unsuccessful"}, open: []string{"detail.Details"}},
		{name: "instance-refresh", aliases: refreshTypes(), open: []string{"detail"}},
		{name: "spot-request-fulfillment"},
		{name: "fleet-instance-change", aliases: fleetTypes("EC2 Fleet "), open: []string{"detail"}},
		{name: "spot-fleet-instance-change", aliases: fleetTypes("EC2 Spot Fleet "), open: []string{"detail"}},
		{name: "fis-experiment-state-change", values: map[string][]string{
			"detail.new-state.status": experimentStates(), "detail.old-state.status": experimentStates()}},
		{name: "cloudtrail-api-call", anySource: true, open: trailFields(),
			aliases: []string{"AWS Service Event via CloudTrail", "AWS Console Sign In via CloudTrail", "AWS Insight via CloudTrail"}},
	}
}

// healthValues are the closed sets of AWS Health's events (AWS Health User Guide, "EventBridge event schema").
func healthValues() map[string][]string {
	return map[string][]string{
		"detail.eventTypeCategory":       {"issue", "accountNotification", "scheduledChange", "investigation"},
		"detail.eventScopeCode":          {"ACCOUNT_SPECIFIC", "PUBLIC"},
		"detail.statusCode":              {"open", "closed", "upcoming"},
		"detail.backupEvent":             {"true", "false"},
		"detail.actionability":           {"ACTION_REQUIRED", "ACTION_MAY_BE_REQUIRED", "INFORMATIONAL"},
		"detail.affectedEntities.status": {"IMPAIRED", "UNIMPAIRED", "PENDING", "RESOLVED", "UNKNOWN"},
	}
}

// lifecycleValues are the closed sets of lifecycle actions (EC2 Auto Scaling User Guide, "Warm pool event types").
func lifecycleValues(transition string) map[string][]string {
	ends := []string{"EC2", "AutoScalingGroup", "WarmPool"}
	return map[string][]string{"detail.LifecycleTransition": {transition}, "detail.Origin": ends, "detail.Destination": ends}
}

// trailFields are the fields of a CloudTrail record (AWS CloudTrail User Guide, "CloudTrail record contents"). Most
// are optional, and many are objects of the calling service, so their values are not checked.
func trailFields() []string {
	var all []string
	for _, field := range strings.Fields("additionalEventData addendum apiVersion awsRegion edgeDeviceDetails errorCode " +
		"errorMessage eventCategory eventContext eventID eventName eventSource eventTime eventType eventVersion " +
		"insightDetails managementEvent readOnly recipientAccountId requestID requestParameters resources " +
		"responseElements serviceEventDetails sessionCredentialFromConsole sharedEventID sourceIPAddress tlsDetails " +
		"userAgent userIdentity vpcEndpointAccountId vpcEndpointId") {
		all = append(all, "detail."+field)
	}
	return all
}

func experimentStates() []string {
	return []string{"pending", "initiating", "running", "completed", "stopping", "stopped", "failed", "cancelled"}
}

func refreshTypes() []string {
	var all []string
	for _, end := range []string{"Checkpoint Reached", "Succeeded", "Failed", "Cancelled", "Rollback Started",
		"Rollback Succeeded", "Rollback Failed"} {
		all = append(all, "EC2 Auto Scaling Instance Refresh "+end)
	}
	return all
}

func fleetTypes(prefix string) []string {
	var all []string
	for _, end := range []string{"State Change", "Error", "Information", "Spot Instance Request Change"} {
		all = append(all, prefix+end)
	}
	return all
}

// otherDetailTypes are other names that AWS documents, by source. They have no sample, but are not misspellings.
func otherDetailTypes() map[string][]string {
	return map[string][]string{
		"aws.ec2": {
			"EBS Fast Snapshot Restore State-change Notification", "EBS Multi-Volume Snapshots Completion Status",
			"EBS Snapshot Notification", "EBS Volume Notification", "EC2 AMI State Change",
			"EC2 Fast Launch State-change Notification", "EC2 ODCR Underutilization Warning",
			"EC2 Capacity Reservation Interruptible Reclamation Complete",
			"EC2 Interruptible Capacity Reservation Allocation Reclamation Completed",
			"EC2 Capacity Reservation Active", "EC2 Capacity Reservation Cancelled", "EC2 Capacity Reservation Expired",
			"Capacity Block Delivered", "Capacity Block Reservation Delivered",
		},
	}
}

// detailTypesOf returns the known detail-types of a source, or of all sources if it is empty.
func detailTypesOf(source string) []string {
	var all []string
	for _, known := range catalogue() {
		if source == "" || known.anySource || known.Source == source {
			all = append(all, known.detailTypes...)
		}
	}
	for other, names := range otherDetailTypes() {
		if source == "" || other == source {
			all = append(all, names...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// knownSources are the sources of the samples.
func knownSources() []string {
	var all []string
	for _, known := range catalogue() {
		all = append(all, known.Source)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// within reports whether a path is one of the objects, or is inside one.
func within(objects []string, path string) bool {
	return slices.ContainsFunc(objects, func(o string) bool { return path == o || strings.HasPrefix(path, o+".") })
}
