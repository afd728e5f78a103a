package autoscaling

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Activity is a scaling activity (Amazon EC2 Auto Scaling API Reference, Activity).
type Activity struct {
	ID, Group, InstanceID string
	Description, Cause    string
	Status, Message       string
	Progress              int
	Start, End            time.Time // End is zero while the activity is in progress
	Zone, SubnetID        string
}

// maxActivities is how many activities are kept.
const maxActivities = 10_000

// Activities lists the activities of a group, newest first; of all groups if it is empty.
func (s *State) Activities(groupName string) []Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Activity
	for _, a := range slices.Backward(s.activities) {
		if groupName == "" || a.Group == groupName {
			out = append(out, *a)
		}
	}
	return out
}

// begin adds the activity of a transition. It needs the lock.
func (s *State) begin(g *group, m *member, t *transition) *Activity {
	in, _ := s.ec2.Instance(m.InstanceID)
	status, doing := "PreInService", "Launching a new EC2 instance: "
	switch {
	case t.hookTransition == Leaving && t.end != Terminated && t.end != WarmedTerminated:
		status, doing = "InProgress", "Moving EC2 instance to the warm pool: "
	case t.hookTransition == Leaving:
		status, doing = "InProgress", "Terminating EC2 instance: "
	case t.origin == toPool:
		doing = "Launching a new EC2 instance from warm pool: "
	case t.destination == toPool:
		doing = "Launching a new EC2 instance into warm pool: "
	}
	return s.record(&Activity{
		ID: t.id, Group: g.Name, InstanceID: m.InstanceID, Description: doing + m.InstanceID, Cause: because(t.began, t.cause),
		Status: status, Progress: 30, Start: t.began, Zone: m.Zone, SubnetID: in.SubnetID,
	})
}

// record needs the lock.
func (s *State) record(a *Activity) *Activity {
	s.activities = append(s.activities, a)
	if len(s.activities) > maxActivities {
		s.activities = slices.Delete(s.activities, 0, maxActivities/10)
	}
	return a
}

// shortly records an activity of negligible duration. It needs the lock.
func (s *State) shortly(m *member, doing, cause string) *Activity {
	now := time.Now().UTC()
	in, _ := s.ec2.Instance(m.InstanceID)
	return s.record(&Activity{
		ID: string(uuid.NewUUID()), Group: m.Group, InstanceID: m.InstanceID, Description: doing + m.InstanceID, Cause: because(now, cause),
		Status: "InProgress", Progress: 50, Start: now, Zone: m.Zone, SubnetID: in.SubnetID,
	})
}

func because(at time.Time, cause string) string {
	return fmt.Sprintf("At %s %s", at.Format("2006-01-02T15:04:05Z"), cause)
}

// status sets the status and progress of an activity.
func (a *Activity) status(status string, progress int) {
	if a.End.IsZero() {
		a.Status, a.Progress = status, progress
	}
}

// close ends an activity, once.
func (a *Activity) close(status, message string) {
	if a.End.IsZero() {
		a.Status, a.Message, a.Progress, a.End = status, message, 100, time.Now().UTC()
	}
}

// launchFailed records the activity of a launch that created no instance. It needs the lock.
func (s *State) launchFailed(g *group, cause string, err error) {
	var known *wire.Error
	if errors.As(err, &known) {
		err = errors.New(known.Message)
	}
	now := time.Now().UTC()
	a := s.record(&Activity{
		ID: string(uuid.NewUUID()), Group: g.Name, Description: "Launching a new EC2 instance.  Status Reason: " + err.Error(),
		Cause: because(now, cause), Start: now,
	})
	a.close("Failed", err.Error()+" Launching EC2 instance failed.")
	s.emit(events.Event{
		Source: "aws.autoscaling", DetailType: "EC2 Instance Launch Unsuccessful", Time: now, Milliseconds: true,
		Resources: []string{g.arn},
		Detail: events.Detail(resultDetail{
			StatusCode: "Failed", Group: g.Name, ActivityID: a.ID, Details: map[string]string{}, RequestID: a.ID, StatusMessage: a.Message,
			EndTime: now.Format(stamp), StartTime: now.Format(stamp), Cause: a.Cause, Description: a.Description, Origin: toEC2, Destination: toGroup,
		}),
	})
}
