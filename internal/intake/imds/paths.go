package imds

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Paths below /latest/meta-data (EC2 User Guide, "Instance metadata
// categories"). A path without content returns 404. All but the first are also
// the subjects of notices.
const (
	pathInstance    = "instance-id"
	pathSpot        = "spot/instance-action"
	pathRebalance   = "events/recommendations/rebalance"
	pathScheduled   = "events/maintenance/scheduled"
	pathHistory     = "events/maintenance/history"
	pathAutoScaling = "autoscaling/target-lifecycle-state"
)

// instanceFormat matches EC2 instance ids.
var instanceFormat = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// readSpot reads pathSpot: {"action":"terminate","time":"2026-05-11T08:16:02Z"}
// (EC2 User Guide, "Spot Instance interruption notices"). With an unreadable
// time the notice has no deadline: the interruption itself is certain.
func readSpot(text string) (notice.Notice, error) {
	var content struct{ Action, Time string }
	if err := object(text, &content); err != nil {
		return notice.Notice{}, err
	}
	action := strings.ToLower(strings.TrimSpace(content.Action))
	switch action {
	case notice.ActionTerminate, notice.ActionStop, notice.ActionHibernate:
	default:
		action = "" // an unknown action still interrupts the instance
	}
	n := about(notice.KindSpotInterruption, pathSpot)
	n.InstanceAction = action
	n.Description, n.ID = "EC2 takes the spot instance back", poll.ID(Name, n.Kind, action, "")
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(content.Time))
	switch known := err == nil && poll.Plausible(at); {
	case known:
		n.Deadline = notice.At(at.UTC(), v1beta1.DeadlineHard)
		n.Description += " at " + poll.Moment(at)
		n.ID = poll.ID(Name, n.Kind, action, poll.Moment(at))
	case action == "":
		return notice.Notice{}, fmt.Errorf("%s has neither a valid action nor a valid time", quote(text))
	}
	if action != "" {
		n.Description += " (" + action + ")"
	}
	return n, nil
}

// readRebalance reads pathRebalance: {"noticeTime":"2026-05-11T08:02:40Z"} (EC2
// User Guide, "EC2 instance rebalance recommendations").
func readRebalance(text string) (notice.Notice, error) {
	var content struct{ NoticeTime string }
	if err := object(text, &content); err != nil {
		return notice.Notice{}, err
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(content.NoticeTime))
	if err != nil || !poll.Plausible(at) {
		return notice.Notice{}, fmt.Errorf("%s is not a valid time: expected a noticeTime such as 2026-05-11T08:02:40Z", quote(content.NoticeTime))
	}
	n := about(notice.KindRebalanceRecommendation, pathRebalance)
	n.Time = metav1.NewTime(at.UTC())
	n.Description = "EC2 sees an elevated risk that it takes the spot instance back"
	n.ID = poll.ID(Name, n.Kind, poll.Moment(at))
	return n, nil
}

// readLifecycle reads pathAutoScaling (EC2 Auto Scaling User Guide, "Retrieve
// the target lifecycle state through instance metadata"). Only Terminated means
// a termination, and InService withdraws it. In a warm pool, in standby or
// detached the instance lives on and may return.
func readLifecycle(text string) (notice.Notice, bool) {
	n := about(notice.KindAutoScalingTermination, pathAutoScaling)
	state := strings.TrimSpace(text)
	switch state {
	case "Terminated":
		n.InstanceAction = notice.ActionTerminate
		n.Description = "its Auto Scaling group terminates the instance"
	case "InService":
		n.Withdrawn = true
		n.Description = "its Auto Scaling group has the instance in service"
	default:
		return notice.Notice{}, false
	}
	n.EventTypeCode = state
	n.ID = poll.ID(Name, n.Kind, state)
	return n, true
}

// readMaintenance reads pathScheduled and pathHistory, which hold lists of
//
//	{"NotBefore":"21 May 2026 09:00:43 GMT","Code":"system-reboot","Description":"scheduled reboot","EventId":"instance-event-0a1b…","State":"active"}
//
// (EC2 User Guide, "View scheduled events for your instances"). An invalid
// entry does not hide the others.
func readMaintenance(text string, isHistory bool) ([]notice.Notice, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var entries []json.RawMessage
	if err := decode(text, &entries); err != nil {
		return nil, err
	}
	var notices []notice.Notice
	var unread error
	for _, entry := range entries {
		n, err := readEntry(string(entry), isHistory)
		if err != nil {
			unread = err
			continue
		}
		notices = append(notices, n)
	}
	return notices, unread
}

func readEntry(text string, isHistory bool) (notice.Notice, error) {
	var content struct{ NotBefore, NotAfter, Code, Description, EventID, State string }
	if err := object(text, &content); err != nil {
		return notice.Notice{}, err
	}
	state := strings.ToLower(strings.TrimSpace(content.State))
	s := poll.Scheduled{
		EventID: strings.TrimSpace(content.EventID), Code: strings.TrimSpace(content.Code), Description: content.Description,
		NotBefore: maintenanceTime(content.NotBefore), NotAfter: maintenanceTime(content.NotAfter),
		Over: isHistory || state == "completed" || state == "canceled" || state == "cancelled",
	}
	n, err := s.Notice(Name, "")
	if err != nil {
		return notice.Notice{}, fmt.Errorf("%s: %w", quote(text), err)
	}
	return n, nil
}

// maintenanceTime parses 21 May 2026 09:00:43 GMT, or returns zero. Go parses
// an unknown zone as UTC, so only GMT and UTC are accepted.
func maintenanceTime(text string) time.Time {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil && poll.Plausible(at) {
		return at.UTC()
	}
	at, err := time.Parse("2 Jan 2006 15:04:05 MST", text)
	if zone, _ := at.Zone(); err != nil || (zone != "GMT" && zone != "UTC") || !poll.Plausible(at) {
		return time.Time{}
	}
	return at.UTC()
}

// about creates a notice. The source adds the instance id.
func about(kind, path string) notice.Notice {
	return notice.Notice{Notice: v1beta1.Notice{Kind: kind, Source: Name, Subject: path}}
}

func object(text string, into any) error {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return fmt.Errorf("%s: expected a JSON object", quote(text))
	}
	return decode(text, into)
}

func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: %w", quote(text), err)
	}
	return nil
}

// maxQuote bounds the part of a response in a log line.
const maxQuote = 80

func quote(s string) string {
	if len(s) > maxQuote {
		s = strings.ToValidUTF8(s[:maxQuote], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
