package sqs

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// spotLead is the time from the warning until EC2 reclaims a spot instance or lent
	// capacity. The message of a spot instance does not contain that time (EC2 User Guide,
	// "Spot Instance interruption notices").
	spotLead = 2 * time.Minute
	// blockLead is how long before the end of a Capacity Block EC2 begins to
	// terminate its instances (EC2 User Guide, "Capacity Blocks for ML").
	blockLead = 30 * time.Minute
)

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
	n.Deadline = notice.At(n.Time.Add(lead), v1alpha1.DeadlineHard)
	n.Description = fmt.Sprintf("EC2 takes the spot instance back at %s", n.Deadline.Time.UTC().Format(time.RFC3339))
	if action != "" {
		n.Description += " (" + action + ")"
	}
	return one(n), nil
}

// readRebalance: EC2 User Guide, "EC2 instance rebalance recommendations".
// There is no deadline; an interruption may follow or not.
func readRebalance(e *envelope) (decoded, error) {
	n, err := e.notice(notice.KindRebalanceRecommendation)
	if err != nil {
		return decoded{}, err
	}
	n.Description = "EC2 sees an elevated risk that it takes the spot instance back"
	return one(n), nil
}
