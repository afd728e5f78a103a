package drill

import (
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// The messages of AWS, by kind. Each detail ends in the mark.

// mark marks the message as a drill. AWS has no such field; intake reads it.
type mark struct {
	Drill string `json:"lifeboat-drill,omitempty"`
}

func (n *Notice) mark() mark { return mark{n.Drill} }

// spot: EC2 User Guide, "Spot Instance interruption notices".
func spot(n *Notice, e *envelope) {
	e.Source, e.DetailType = sourceEC2, "EC2 Spot Instance Interruption Warning"
	e.Resources = []string{n.zoneARN()}
	e.Detail = instanceDetail{InstanceID: n.Target.InstanceID, InstanceAction: n.action(), mark: n.mark()}
}

type instanceDetail struct {
	InstanceID     string `json:"instance-id"`
	InstanceAction string `json:"instance-action,omitempty"`
	State          string `json:"state,omitempty"`
	mark
}

// rebalance: EC2 User Guide, "EC2 instance rebalance recommendations".
func rebalance(n *Notice, e *envelope) {
	e.Source, e.DetailType = sourceEC2, "EC2 Instance Rebalance Recommendation"
	e.Resources = []string{n.zoneARN()}
	e.Detail = instanceDetail{InstanceID: n.Target.InstanceID, mark: n.mark()}
}

// stateChange: EC2 User Guide, "Amazon EC2 instance state change events".
func stateChange(n *Notice, e *envelope) {
	state := n.State
	if state == "" {
		state = notice.StateStopping
	}
	e.Source, e.DetailType = sourceEC2, "EC2 Instance State-change Notification"
	e.Resources = []string{n.Place.instanceARN(n.Target.InstanceID)}
	e.Detail = instanceDetail{InstanceID: n.Target.InstanceID, State: state, mark: n.mark()}
}

// reservation: EC2 User Guide, "Interruptible Capacity Reservations". The sample
// there has the resource as a plain string.
func reservation(n *Notice, e *envelope) {
	e.Source, e.DetailType = sourceEC2, "EC2 Capacity Reservation Instance Interruption Warning"
	e.Resources = n.Place.instanceARN(n.Target.InstanceID)
	e.Detail = struct {
		InstanceID     string `json:"instance-id"`
		InstanceAction string `json:"instance-action"`
		End            string `json:"instance-termination-time"`
		mark
	}{n.Target.InstanceID, n.action(), stamp(n.Begins), n.mark()}
}

// blockLead is the time before the end of a Capacity Block when EC2 starts to terminate
// instances (EC2 User Guide, "Capacity Blocks for ML").
const blockLead = 30 * time.Minute

// blockExpiration: EC2 User Guide, "Monitor Capacity Blocks using EventBridge".
// It names the block, and none of its instances.
func blockExpiration(n *Notice, e *envelope) {
	block := n.Target.Reservation
	e.Source, e.DetailType = sourceEC2, "Capacity Block Reservation Expiration Warning"
	e.Resources = []string{n.Place.arn("ec2", "capacity-reservation/"+block)}
	e.Detail = struct {
		Reservation string `json:"capacity-reservation-id"`
		End         string `json:"end-date"`
		mark
	}{block, stamp(n.Begins.Add(blockLead)), n.mark()}
}

// DefaultGroup is the default Auto Scaling group and hook. No group has this name, so
// no real hook is completed.
const DefaultGroup = "lifeboat-drill"

const sourceAutoScaling = "aws.autoscaling"

func (n *Notice) group() string {
	if n.Group == "" {
		return DefaultGroup
	}
	return n.Group
}

// termination: EC2 Auto Scaling User Guide, "EventBridge event reference". Its times
// have milliseconds, and the resource is the group.
func termination(n *Notice, e *envelope) {
	e.Source, e.DetailType = sourceAutoScaling, "EC2 Instance-terminate Lifecycle Action"
	e.Time = n.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	e.Resources = []string{n.Place.arn("autoscaling", "autoScalingGroup:"+n.ID+":autoScalingGroupName/"+n.group())}
	e.Detail = struct {
		Token       string `json:"LifecycleActionToken"`
		Group       string `json:"AutoScalingGroupName"`
		Hook        string `json:"LifecycleHookName"`
		Instance    string `json:"EC2InstanceId"`
		Transition  string `json:"LifecycleTransition"`
		Origin      string `json:"Origin"`
		Destination string `json:"Destination"`
		mark
	}{n.ID, n.group(), DefaultGroup, n.Target.InstanceID, "autoscaling:EC2_INSTANCE_TERMINATING", "AutoScalingGroup", "EC2", n.mark()}
}

type lifecycleCall struct {
	Group    string `json:"autoScalingGroupName"`
	Hook     string `json:"lifecycleHookName"`
	Result   string `json:"lifecycleActionResult"`
	Instance string `json:"instanceId"`
}

// lifecycleFailure: CloudTrail User Guide, "CloudTrail record contents".
func lifecycleFailure(n *Notice, e *envelope) {
	e.Source, e.DetailType = sourceAutoScaling, "AWS API Call via CloudTrail"
	e.Resources = []string{}
	e.Detail = struct {
		Version    string        `json:"eventVersion"`
		Time       string        `json:"eventTime"`
		Source     string        `json:"eventSource"`
		Name       string        `json:"eventName"`
		Region     string        `json:"awsRegion"`
		Agent      string        `json:"userAgent"`
		Error      string        `json:"errorCode"`
		Message    string        `json:"errorMessage"`
		Parameters lifecycleCall `json:"requestParameters"`
		EventID    string        `json:"eventID"`
		ReadOnly   bool          `json:"readOnly"`
		Type       string        `json:"eventType"`
		mark
	}{
		"1.11", stamp(n.Time), "autoscaling.amazonaws.com", "CompleteLifecycleAction", n.Place.Region, "lifeboat", "ValidationException",
		"No active Lifecycle Action found with instance ID " + n.Target.InstanceID,
		lifecycleCall{n.group(), DefaultGroup, "CONTINUE", n.Target.InstanceID}, n.ID, false, "AwsApiCall", n.mark(),
	}
}

// The default codes of Health events.
const (
	DefaultScheduledCode = "AWS_EC2_INSTANCE_STOP_SCHEDULED"
	DefaultIssueCode     = "AWS_EC2_INSTANCE_STORE_DRIVE_PERFORMANCE_DEGRADED"
)

type healthDetail struct {
	EventARN        string         `json:"eventArn"`
	Service         string         `json:"service"`
	Code            string         `json:"eventTypeCode"`
	Category        string         `json:"eventTypeCategory"`
	Scope           string         `json:"eventScopeCode"`
	CommunicationID string         `json:"communicationId"`
	Start           string         `json:"startTime,omitempty"`
	End             string         `json:"endTime,omitempty"`
	Updated         string         `json:"lastUpdatedTime"`
	Status          string         `json:"statusCode"`
	Region          string         `json:"eventRegion"`
	Descriptions    []description  `json:"eventDescription"`
	Entities        []healthEntity `json:"affectedEntities"`
	Account         string         `json:"affectedAccount"`
	// Page, TotalPages and Backup are strings in AWS's messages too.
	Page       string `json:"page"`
	TotalPages string `json:"totalPages"`
	Backup     string `json:"backupEvent"`
	mark
}

type description struct {
	Language string `json:"language"`
	Text     string `json:"latestDescription"`
}

type healthEntity struct {
	Value   string `json:"entityValue"`
	Status  string `json:"status"`
	Updated string `json:"lastUpdatedTime"`
}

// scheduledChange: AWS Health User Guide, "EventBridge event schema". A cancelled
// change is the same event with the status closed.
func scheduledChange(n *Notice, e *envelope) {
	d := n.health(e, "scheduledChange", DefaultScheduledCode)
	d.Start, d.End = healthTime(n.Begins), healthTime(n.Begins)
	d.Status, d.Entities[0].Status = "upcoming", "PENDING"
	if !n.Begins.After(n.Time) {
		d.Status = "open"
	}
	n.close(&d)
	e.Detail = d
}

// healthIssue: like scheduledChange, without a time for a change.
func healthIssue(n *Notice, e *envelope) {
	d := n.health(e, "issue", DefaultIssueCode)
	d.Start = healthTime(n.Time)
	d.Status, d.Entities[0].Status = "open", "IMPAIRED"
	n.close(&d)
	e.Detail = d
}

func (n *Notice) close(d *healthDetail) {
	if n.Closed {
		d.Status, d.Entities[0].Status = "closed", "RESOLVED"
	}
}

func (n *Notice) health(e *envelope, category, code string) healthDetail {
	if n.Code != "" {
		code = n.Code
	}
	subject := n.Subject
	if subject == "" {
		subject = strings.Join([]string{"arn", n.Place.partition(), "health", n.Place.Region, "", "event/EC2/" + code + "/" + code + "_" + n.Drill}, ":")
	}
	instance := n.Place.instanceARN(n.Target.InstanceID)
	e.Source, e.DetailType, e.Resources = "aws.health", "AWS Health Event", []string{instance}
	return healthDetail{
		EventARN: subject, Service: "EC2", Code: code, Category: category, Scope: "ACCOUNT_SPECIFIC",
		CommunicationID: strings.ReplaceAll(n.ID, "-", "") + "-1",
		Updated:         healthTime(n.Time), Region: n.Place.Region, Account: n.Place.Account,
		Descriptions: []description{{"en_US", "A drill of Lifeboat; AWS has not planned any change."}},
		Entities:     []healthEntity{{Value: instance, Updated: healthTime(n.Time)}},
		Page:         "1", TotalPages: "1", Backup: "false", mark: n.mark(),
	}
}

// healthTime formats a time as AWS Health does: days can have one digit.
func healthTime(t time.Time) string { return t.UTC().Format("Mon, 2 Jan 2006 15:04:05") + " GMT" }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
