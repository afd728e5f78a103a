package sqs

import (
	"slices"
	"strings"
)

// row says what is made of the messages of one source with one of the
// detail-types.
type row struct {
	// source and detailTypes tell the messages apart. The first detail-type is
	// the current one; the others stand in other pages of AWS's documentation.
	source      string
	detailTypes []string
	// read makes notices of a message, or says why it is of no concern.
	read func(*envelope) (decoded, error)
	// unconcern says why none of these messages concerns us; read is not used.
	unconcern string
}

// kinds is all that this source understands. To add a kind, add a row, and a
// real message in testdata/.
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

	// What an Auto Scaling group sends to a queue that is its own notification
	// target has no detail-type; see open.
	{autoScaling, []string{"autoscaling:EC2_INSTANCE_TERMINATING"}, readTerminating, ""},
	{autoScaling, []string{"autoscaling:EC2_INSTANCE_LAUNCHING"}, readLaunching, ""},
	{autoScaling, []string{"autoscaling:TEST_NOTIFICATION"}, nil,
		"an Auto Scaling group proved with it that it can send to the queue"},
}

// find returns the row of a message, or nil. Both names must be exact, as AWS
// writes them: whoever sends something alike does not mean the same.
func find(source, detailType string) *row {
	for i := range kinds {
		if kinds[i].source == source && slices.Contains(kinds[i].detailTypes, detailType) {
			return &kinds[i]
		}
	}
	return nil
}

// fold evens out what input transformers do to words.
func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
