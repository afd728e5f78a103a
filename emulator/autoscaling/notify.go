package autoscaling

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// actionDetail describes a lifecycle action, in events and in messages (Amazon EC2 Auto Scaling
// User Guide, EventBridge event reference).
type actionDetail struct {
	Token       string              `json:"LifecycleActionToken"`
	Group       string              `json:"AutoScalingGroupName"`
	Hook        string              `json:"LifecycleHookName"`
	InstanceID  string              `json:"EC2InstanceId"`
	Transition  LifecycleTransition `json:"LifecycleTransition"`
	Metadata    string              `json:"NotificationMetadata,omitempty"`
	Origin      string              `json:"Origin"`
	Destination string              `json:"Destination"`
}

// header is the start of messages that go directly to a queue.
type header struct {
	Service   string
	Time      string
	RequestID string `json:"RequestId"`
	AccountID string `json:"AccountId"`
}

func (s *State) header(requestID string) header {
	return header{"AWS Auto Scaling", time.Now().UTC().Format(stamp), requestID, s.scope.Account}
}

const stamp = "2006-01-02T15:04:05.000Z"

// announce notifies about a lifecycle action: always with an event, and with a message if the hook
// has a queue as its target. It needs the lock.
func (s *State) announce(g *group, m *member, t *transition, a *action) {
	detail := actionDetail{
		Token: a.token, Group: g.Name, Hook: a.hook.Name, InstanceID: m.InstanceID, Transition: t.hookTransition,
		Metadata: a.hook.Metadata, Origin: t.origin, Destination: t.destination,
	}
	name := "EC2 Instance-launch Lifecycle Action"
	if t.hookTransition == Leaving {
		name = "EC2 Instance-terminate Lifecycle Action"
	}
	s.emit(events.Event{
		Source: "aws.autoscaling", DetailType: name, Time: time.Now(), Milliseconds: true,
		Resources: []string{g.arn}, Detail: events.Detail(detail),
	})
	if a.hook.NotificationTarget == "" {
		return
	}
	// As on AWS, a message that cannot be delivered is lost.
	_ = s.send(a.hook, struct {
		header
		actionDetail
	}{s.header(t.requestID), detail})
}

// sendTest sends the test message to a queue that becomes the target of a hook. Source: Amazon EC2
// Auto Scaling User Guide, Prepare to add a lifecycle hook.
func (s *State) sendTest(g *group, h Hook) error {
	return s.send(h, struct {
		Group string `json:"AutoScalingGroupName"`
		header
		Event    string
		GroupARN string `json:"AutoScalingGroupARN"`
	}{g.Name, s.header(string(uuid.NewUUID())), "autoscaling:TEST_NOTIFICATION", g.arn})
}

func (s *State) send(h Hook, message any) error {
	if !strings.Contains(h.NotificationTarget, ":sqs:") {
		return fmt.Errorf("sending to %s: only queues are emulated", h.NotificationTarget)
	}
	body, err := wire.JSON(message)
	if err != nil {
		return err
	}
	return s.deliver(h.NotificationTarget, string(body), sqs.Sender{RoleARN: h.RoleARN})
}

// conclude emits the event at the end of a transition: outcome is Successful or Unsuccessful. It
// needs the lock.
func (s *State) conclude(m *member, t *transition, outcome string) {
	verb, doing, status := "Launch", "Launching a new", "InProgress"
	if t.hookTransition == Leaving {
		verb, doing = "Terminate", "Terminating"
	}
	if outcome == "Unsuccessful" {
		status = "Failed"
	}
	in, _ := s.ec2.Instance(m.InstanceID)
	now := time.Now()
	s.emit(events.Event{
		Source: "aws.autoscaling", DetailType: "EC2 Instance " + verb + " " + outcome, Time: now, Milliseconds: true,
		Resources: []string{s.groups[m.Group].arn, s.scope.ARN("ec2", "instance/"+m.InstanceID)},
		Detail: events.Detail(resultDetail{
			StatusCode: status, Group: m.Group, ActivityID: t.id, RequestID: t.requestID,
			Details: map[string]string{"Availability Zone": m.Zone, "Subnet ID": in.SubnetID},
			EndTime: now.UTC().Format(stamp), StartTime: t.began.Format(stamp), InstanceID: m.InstanceID,
			Cause:       because(t.began, t.cause),
			Description: doing + " EC2 instance: " + m.InstanceID, Origin: t.origin, Destination: t.destination,
		}),
	})
}

// resultDetail describes the end of a transition, in events.
type resultDetail struct {
	StatusCode    string
	Group         string `json:"AutoScalingGroupName"`
	ActivityID    string `json:"ActivityId"`
	Details       map[string]string
	RequestID     string `json:"RequestId"`
	StatusMessage string
	EndTime       string
	InstanceID    string `json:"EC2InstanceId"`
	StartTime     string
	Cause         string
	Description   string
	Origin        string
	Destination   string
}
