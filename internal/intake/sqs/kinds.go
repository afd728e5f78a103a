package sqs

import (
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// row says how messages of one source with some detail-types are read.
type row struct {
	// source and detailTypes identify the messages. The first detail-type is the current one;
	// the others are from other pages of AWS's documentation.
	source      string
	detailTypes []string
	// read makes notices of a message, or says why it is ignored.
	read func(*envelope) (decoded, error)
	// unconcern says why all these messages are ignored; read is not used then.
	unconcern string
}

// kinds has all messages that this source understands. To add a kind, add a row, and a real
// message in testdata/.
var kinds = []row{
	{"aws.ec2", []string{"EC2 Spot Instance Interruption Warning"}, readSpot, ""},
	{"aws.ec2", []string{"EC2 Instance Rebalance Recommendation", "EC2 Spot Instance Rebalance Recommended"}, readRebalance, ""},
	{"aws.ec2", []string{"EC2 Instance State-change Notification"}, readStateChange, ""},
	{"aws.ec2", []string{"EC2 Capacity Reservation Instance Interruption Warning",
		"EC2 Interruptible Capacity Reservation Instance Interruption Warning"}, readReservation, ""},
	{"aws.ec2", []string{"Capacity Block Reservation Expiration Warning", "Capacity Block Expiration Warning"}, readBlockExpiration, ""},

	{"aws.health", []string{"AWS Health Event", "AWS Health Abuse Event"}, readHealth, ""},

	{"aws.autoscaling", []string{"EC2 Instance-terminate Lifecycle Action"}, readTerminating, ""},
	{"aws.autoscaling", []string{"EC2 Instance-launch Lifecycle Action"}, readLaunching, ""},
	{"aws.autoscaling", []string{"EC2 Instance Terminate Successful"}, readTerminated, ""},
	{"aws.autoscaling", []string{"EC2 Instance Terminate Unsuccessful", "EC2 Instance Launch Unsuccessful"}, readScalingFailure, ""},
	{"aws.autoscaling", []string{"EC2 Instance Launch Successful"}, readLaunched, ""},
	{"aws.autoscaling", []string{"AWS API Call via CloudTrail"}, readTrail, ""},

	// Messages that an Auto Scaling group sends directly to its notification target have no
	// detail-type; see open.
	{autoScaling, []string{"autoscaling:EC2_INSTANCE_TERMINATING"}, readTerminating, ""},
	{autoScaling, []string{"autoscaling:EC2_INSTANCE_LAUNCHING"}, readLaunching, ""},
	{autoScaling, []string{"autoscaling:TEST_NOTIFICATION"}, nil,
		"it is the test message of an Auto Scaling group"},
}

// find returns the row of a message, or nil. Both names must match exactly: similar messages of
// other senders have another meaning.
func find(source, detailType string) *row {
	for i := range kinds {
		if kinds[i].source == source && slices.Contains(kinds[i].detailTypes, detailType) {
			return &kinds[i]
		}
	}
	return nil
}

// spotLead is the time from the warning until EC2 reclaims a spot instance or lent
// capacity. The message of a spot instance does not contain that time (EC2 User Guide,
// "Spot Instance interruption notices").
const spotLead = 2 * time.Minute

// readSpot: EC2 User Guide, "Spot Instance interruption notices". The warning comes two minutes
// before stop and terminate; hibernation begins immediately.
func readSpot(e *envelope) (decoded, error) {
	n, err := e.notice(notice.KindSpotInterruption)
	if err != nil {
		return decoded{}, err
	}
	var detail struct {
		Action string `json:"instance-action"`
	}
	if err := e.into(&detail); err != nil {
		return decoded{}, err
	}
	action, lead := fold(detail.Action), spotLead
	switch action {
	case notice.ActionTerminate, notice.ActionStop:
	case notice.ActionHibernate:
		lead = 0
	default: // EC2 reclaims it with any other action too
		action = ""
	}
	n.InstanceAction = action
	n.Deadline = notice.At(n.Time.Add(lead), v1beta1.DeadlineHard)
	n.Description = fmt.Sprintf("EC2 takes the spot instance back at %s", stamp(n.Deadline.Time.Time))
	if action != "" {
		n.Description += " (" + action + ")"
	}
	return one(n), nil
}
