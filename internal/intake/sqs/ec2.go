package sqs

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// blockLead is how long before the end of a Capacity Block EC2 begins to terminate its
// instances (EC2 User Guide, "Capacity Blocks for ML").
const blockLead = 30 * time.Minute

// readStateChange: EC2 User Guide, "Amazon EC2 instance state change events".
// They are sent as the change happens. While the instance shuts down its end is an
// estimate; once it is stopped or terminated the deadline is the notice's own time.
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
		n.Deadline = notice.ShutdownDeadline(state, n.Time.Time)
		n.Description = "the instance is " + state
		return one(n), nil
	default:
		return decoded{}, unreadable("detail.state",
			"%s is no state of an instance: expected pending, running, stopping, stopped, shutting-down or terminated", quote(detail.State))
	}
}

// readReservation: EC2 User Guide, "Interruptible Capacity Reservations" and "Capacity Blocks
// for ML". Both messages contain the time.
func readReservation(e *envelope) (decoded, error) {
	n, err := e.notice(notice.KindCapacityReservationInterruption)
	if err != nil {
		return decoded{}, err
	}
	var detail struct {
		Action string `json:"instance-action"`
		End    string `json:"instance-termination-time"`
	}
	if err := e.into(&detail); err != nil {
		return decoded{}, err
	}
	end := n.Time.Add(spotLead)
	if detail.End != "" {
		if end, err = moment("detail.instance-termination-time", detail.End); err != nil {
			return decoded{}, err
		}
	}
	n.InstanceAction = fold(detail.Action)
	n.Deadline = notice.At(end, v1beta1.DeadlineHard)
	n.Description = "EC2 takes back the capacity that the instance was lent at " + stamp(end)
	return one(n), nil
}

// readBlockExpiration: EC2 User Guide, "Monitor Capacity Blocks using EventBridge". It comes 40
// minutes before the end, ten minutes before the terminations, and names the block but not its
// instances.
func readBlockExpiration(e *envelope) (decoded, error) {
	var detail struct {
		Reservation string `json:"capacity-reservation-id"`
		End         string `json:"end-date"`
	}
	if err := e.into(&detail); err != nil {
		return decoded{}, err
	}
	block := strings.TrimSpace(detail.Reservation)
	if !strings.HasPrefix(block, "cr-") {
		return decoded{}, unreadable("detail.capacity-reservation-id", "%s is none: expected one such as cr-0a1b2c3d4e5f60718", quote(block))
	}
	end, err := moment("detail.end-date", detail.End)
	if err != nil {
		return decoded{}, err
	}
	n, err := e.about("", notice.KindCapacityBlockExpiration)
	if err != nil {
		return decoded{}, err
	}
	n.InstanceAction, n.Subject = notice.ActionTerminate, block
	n.Deadline = notice.At(end.Add(-blockLead), v1beta1.DeadlineHard)
	n.Description = fmt.Sprintf("Capacity Block %s ends at %s; EC2 begins to terminate its instances half an hour before", block, stamp(end))
	return decoded{groups: []group{{filter: filterReservation, value: block, notice: n}}}, nil
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

// stamp formats a time for people.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
