package poll

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Scheduled is a scheduled event of an instance, as reported by
// DescribeInstanceStatus and by instance metadata (EC2 User Guide, "Scheduled
// events for Amazon EC2 instances").
type Scheduled struct {
	// EventID is EC2's id of the event: instance-event-0123456789abcdef0.
	EventID string
	// Code is one of ScheduledCodes, or a newer one.
	Code string
	// Description is EC2's text. It begins with [Completed] or [Canceled] once
	// the event is over; EC2 lists such an event for another week.
	Description string
	// NotBefore and NotAfter are the time window; zero: not given.
	NotBefore, NotAfter time.Time
	// Over is true if something other than the description says that the event
	// is over.
	Over bool
}

// Notice converts the event. An upcoming event without a start time is an
// error: as a notice it would drain the node at once.
func (s Scheduled) Notice(source, instanceID string) (notice.Notice, error) {
	code, subject := notice.Cut(s.Code, 128), s.EventID
	if subject == "" {
		subject = code // an older response has no ids
	}
	if subject == "" {
		return notice.Notice{}, errors.New("a scheduled event has neither an id nor a code")
	}
	n := notice.Notice{
		Notice: v1beta1.Notice{
			Kind: notice.KindScheduledChange, Source: source, Subject: notice.Cut(subject, 512), EventTypeCode: code,
			InstanceAction: ScheduledAction(code), Withdrawn: s.Over || isOverText(s.Description),
		},
		InstanceID: instanceID,
	}
	if !s.NotBefore.IsZero() && Plausible(s.NotBefore) {
		n.Deadline = notice.At(s.NotBefore.UTC(), v1beta1.DeadlineSoft)
	}
	if !s.NotAfter.IsZero() && Plausible(s.NotAfter) {
		end := metav1.NewTime(s.NotAfter.UTC())
		n.EndTime = &end
	}
	if n.Deadline == nil && !n.Withdrawn {
		return notice.Notice{}, fmt.Errorf("the scheduled event %q has no valid start time", n.Subject)
	}
	n.Description = s.sentence(&n)
	word := "active"
	if n.Withdrawn {
		word = "over"
	}
	n.ID = ID(source, n.Kind, subject, code, Moment(s.NotBefore), Moment(s.NotAfter), word)
	return n, nil
}

func isOverText(description string) bool {
	d := strings.ToLower(strings.TrimSpace(description))
	return strings.HasPrefix(d, "[completed]") || strings.HasPrefix(d, "[canceled]") || strings.HasPrefix(d, "[cancelled]")
}

func (s Scheduled) sentence(n *notice.Notice) string {
	description := strings.TrimSpace(strings.ToValidUTF8(s.Description, "�"))
	if description != "" {
		description = ": " + description
	}
	switch {
	case n.Withdrawn:
		return fmt.Sprintf("the scheduled event %s is over%s", n.EventTypeCode, description)
	case n.EndTime == nil:
		return fmt.Sprintf("EC2 has scheduled the event %s for %s%s", n.EventTypeCode, Moment(s.NotBefore), description)
	}
	return fmt.Sprintf("EC2 has scheduled the event %s for %s to %s%s", n.EventTypeCode, Moment(s.NotBefore), Moment(s.NotAfter), description)
}

// ScheduledAction returns what a scheduled event of EC2 does to the instance,
// or "" for an unknown code. A retirement stops an instance with an EBS root
// device, which nearly all nodes have, and terminates others.
func ScheduledAction(code string) string {
	switch code {
	case "instance-stop", "instance-retirement":
		return notice.ActionStop
	case "instance-reboot", "system-reboot":
		return notice.ActionReboot
	case "system-maintenance":
		return notice.ActionMaintain
	}
	return ""
}

// ScheduledCodes are the codes that EC2 documents.
func ScheduledCodes() []string {
	return []string{"instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot"}
}
