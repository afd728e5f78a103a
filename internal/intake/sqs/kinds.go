package sqs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// spotLead is how long after the warning EC2 takes a spot instance back. The
// message does not carry the moment itself (EC2 User Guide, "Spot Instance
// interruption notices").
const spotLead = 2 * time.Minute

// row says what is made of the messages of one source with one of the
// detail-types.
type row struct {
	// source and detailTypes tell the messages apart. The first detail-type is
	// the current one; the others stand in other pages of AWS's documentation.
	source      string
	detailTypes []string
	// read makes a notice of a message, or says why it is of no concern.
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

	// What an Auto Scaling group sends to a queue that is its own notification
	// target has no detail-type; see direct.
	{autoScaling, []string{"autoscaling:TEST_NOTIFICATION"}, nil,
		"an Auto Scaling group proved with it that it can send to the queue"},
	{autoScaling, []string{"autoscaling:EC2_INSTANCE_TERMINATING", "autoscaling:EC2_INSTANCE_LAUNCHING"}, nil,
		"lifecycle hooks are not answered by this release: complete them by other means, or they end by their own timeout"},
	{"aws.autoscaling", []string{"EC2 Instance-terminate Lifecycle Action", "EC2 Instance-launch Lifecycle Action"}, nil,
		"lifecycle hooks are not answered by this release: complete them by other means, or they end by their own timeout"},
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

// readSpot: EC2 User Guide, "Spot Instance interruption notices". The warning
// comes two minutes before stop and terminate; hibernation begins at once.
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
	case "terminate", "stop":
	case "hibernate":
		lead = 0
	default: // whatever is done to it, EC2 takes it back
		action = ""
	}
	n.InstanceAction = action
	n.Deadline = notice.At(n.Time.Add(lead), v1alpha1.DeadlineHard)
	n.Description = fmt.Sprintf("EC2 takes the spot instance back at %s", n.Deadline.Time.UTC().Format(time.RFC3339))
	if action != "" {
		n.Description += " (" + action + ")"
	}
	return decoded{notices: []notice.Notice{n}}, nil
}

// readRebalance: EC2 User Guide, "EC2 instance rebalance recommendations".
// There is no deadline; an interruption may follow or not.
func readRebalance(e *envelope) (decoded, error) {
	n, err := e.notice(notice.KindRebalanceRecommendation)
	if err != nil {
		return decoded{}, err
	}
	n.Description = "EC2 sees an elevated risk that it takes the spot instance back"
	return decoded{notices: []notice.Notice{n}}, nil
}

// readStateChange: EC2 User Guide, "Amazon EC2 instance state change events".
// They come as the change happens, so the deadline is the notice's own time.
func readStateChange(e *envelope) (decoded, error) {
	var detail struct {
		State string `json:"state"`
	}
	if err := e.into(&detail); err != nil {
		return decoded{}, err
	}
	switch state := fold(detail.State); state {
	case "pending", "running":
		return decoded{unconcern: "the instance is starting or runs", ordinary: true}, nil
	case notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated:
		n, err := e.notice(notice.KindInstanceStateChange)
		if err != nil {
			return decoded{}, err
		}
		n.InstanceState = state
		n.Deadline = notice.At(n.Time.Time, v1alpha1.DeadlineHard)
		n.Description = "the instance is " + state
		return decoded{notices: []notice.Notice{n}}, nil
	default:
		return decoded{}, unreadable("detail.state",
			"%s is no state of an instance: expected pending, running, stopping, stopped, shutting-down or terminated", quote(detail.State))
	}
}

// fold evens out what input transformers do to words.
func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
