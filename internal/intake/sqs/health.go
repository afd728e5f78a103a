package sqs

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// health is the detail of AWS Health's messages (AWS Health User Guide, "EventBridge event
// schema"). Page, totalPages and backupEvent are ignored: each page is complete, and copies have
// the same communicationId.
type health struct {
	EventARN        string   `json:"eventArn"`
	Service         string   `json:"service"`
	Code            string   `json:"eventTypeCode"`
	Category        string   `json:"eventTypeCategory"`
	CommunicationID string   `json:"communicationId"`
	Start           string   `json:"startTime"`
	End             string   `json:"endTime"`
	Updated         string   `json:"lastUpdatedTime"`
	Status          string   `json:"statusCode"`
	Region          string   `json:"eventRegion"`
	Account         string   `json:"affectedAccount"`
	Entities        []entity `json:"affectedEntities"`
}

type entity struct {
	// Value is an id or an ARN.
	Value   string `json:"entityValue"`
	Status  string `json:"status"`
	Updated string `json:"lastUpdatedTime"`
}

const (
	scheduledChange = "scheduledChange"
	statusClosed    = "closed"
	statusResolved  = "RESOLVED"
	// maxEntities bounds the entities of one message that are read. AWS Health puts at most 100
	// on a page (AWS Health User Guide, "Pagination of events on EventBridge").
	maxEntities = 500
)

// readHealth returns one notice for each named instance. A message without any never means all
// instances.
func readHealth(e *envelope) (decoded, error) { //nolint:gocyclo // one check for each field of the message
	var h health
	if err := e.into(&h); err != nil {
		return decoded{}, err
	}
	if h.Code == "" {
		return decoded{}, unreadable("detail.eventTypeCode", "missing: expected AWS Health's whole message; if the rule's target has an input transformer, remove it")
	}
	if len(h.Entities) == 0 {
		for _, arn := range e.Resources {
			h.Entities = append(h.Entities, entity{Value: arn})
		}
	}
	if len(h.Entities) > maxEntities {
		return decoded{}, unreadable("detail.affectedEntities", "%d entities: expected at most %d", len(h.Entities), maxEntities)
	}
	if h.Region != "" {
		e.Region = h.Region // the envelope has the region of delivery
	}
	if h.Account != "" {
		e.Account = h.Account
	}
	var d decoded
	for _, entity := range h.Entities {
		if err := h.entity(e, entity, &d); err != nil {
			return decoded{}, err
		}
	}
	if len(d.notices)+len(d.groups)+len(d.reports) > 0 {
		return d, nil
	}
	if (h.Service == "EC2" || h.Service == "EKS") && h.Status != statusClosed {
		report, err := h.report(e)
		return decoded{reports: []intake.Report{report}}, err
	}
	return decoded{unconcern: "it names nothing of a cluster, service " + quote(h.Service)}, nil
}

// entity adds the notice of one entity.
func (h *health) entity(e *envelope, it entity, d *decoded) error {
	last := strings.TrimSpace(it.Value[strings.LastIndexByte(it.Value, '/')+1:])
	_, isInstance := instanceIn(it.Value)
	switch {
	case isInstance:
		n, err := h.notice(e, last, it)
		d.notices = append(d.notices, n)
		return err
	case strings.HasPrefix(last, "h-"):
		n, err := h.notice(e, "", it)
		d.groups = append(d.groups, group{filter: filterHost, value: last, notice: n})
		return err
	case strings.HasPrefix(last, "vol-") && !h.over(it):
		return h.volume(e, last, d)
	}
	return nil
}

// volume adds a volume to the report of this message.
func (h *health) volume(e *envelope, id string, d *decoded) error {
	if len(d.reports) == 0 {
		report, err := h.report(e)
		if err != nil {
			return err
		}
		d.reports = []intake.Report{report}
	}
	d.reports[0].Volumes = append(d.reports[0].Volumes, id)
	return nil
}

// over reports whether the event is over or withdrawn for the entity.
func (h *health) over(it entity) bool { return h.Status == statusClosed || it.Status == statusResolved }

// notice is the notice of an instance.
func (h *health) notice(e *envelope, instance string, it entity) (notice.Notice, error) {
	kind := notice.KindHealthIssue
	if h.Category == scheduledChange && h.Service == "EC2" {
		kind = notice.KindScheduledChange
	}
	n, err := e.about(instance, kind)
	if err != nil {
		return n, err
	}
	if id := strings.TrimSpace(h.CommunicationID); id != "" && len(id) <= maxID {
		n.ID = id
	}
	// A notice is as new as its last update: the queue keeps no order.
	n.Time = metav1.NewTime(h.updated(n.Time.Time, it))
	n.EventTypeCode, n.Subject, n.Withdrawn = notice.Cut(h.Code, 128), notice.Cut(h.subject(), 512), h.over(it)
	n.Description = fmt.Sprintf("AWS Health: %s is %s", h.Code, h.Status)
	if kind == notice.KindScheduledChange {
		err = h.schedule(&n)
	}
	return n, err
}

func (h *health) subject() string {
	if h.EventARN != "" {
		return h.EventARN
	}
	return h.Code
}

// updated is the latest update of the event or of the entity in it; issued if there is none.
func (h *health) updated(issued time.Time, it entity) time.Time {
	var latest time.Time
	for _, text := range []string{h.Updated, it.Updated} {
		// An invalid time is ignored; the other entities must not be lost because of it.
		if at, err := moment("", text); err == nil && at.After(latest) {
			latest = at
		}
	}
	if latest.IsZero() {
		return issued
	}
	return latest
}

// schedule reads the planned action and its time. Without a start, or with an unknown code, it
// is only reported.
func (h *health) schedule(n *notice.Notice) error {
	if h.Start == "" {
		n.Description += "; it does not say when it begins"
		return nil
	}
	begin, err := moment("detail.startTime", h.Start)
	if err != nil {
		return err
	}
	n.InstanceAction = actionOf(h.Code)
	n.Deadline = notice.At(begin, v1beta1.DeadlineSoft)
	n.Description += ", from " + stamp(begin)
	if h.End == "" {
		return nil
	}
	end, err := moment("detail.endTime", h.End)
	if err != nil {
		return err
	}
	until := metav1.NewTime(end)
	n.EndTime = &until
	n.Description += " until " + stamp(end)
	return nil
}

// actionOf returns the action of a code. AWS publishes no closed list of codes; unknown ones
// give "". A retired instance with an EBS root volume is only stopped; one without is lost (EC2
// User Guide, "Instance retirement").
func actionOf(code string) string {
	has := func(part string) bool { return strings.Contains(code, part) }
	switch {
	case has("_TERMINATION_"):
		return notice.ActionTerminate
	case has("_RETIREMENT_") && !has("_PERSISTENT_") && !has("_DEDICATED_HOST_"):
		return notice.ActionTerminate
	case has("_RETIREMENT_"), has("_STOP_"):
		return notice.ActionStop
	case has("_REBOOT_"):
		return notice.ActionReboot
	case has("_NETWORK_MAINTENANCE_"), has("_POWER_MAINTENANCE_"):
		return notice.ActionMaintain
	}
	return ""
}

// report is the report about something that is no instance.
func (h *health) report(e *envelope) (intake.Report, error) {
	issued, err := moment("time", e.Time)
	if err != nil {
		return intake.Report{}, err
	}
	r := intake.Report{
		ID: strings.TrimSpace(h.CommunicationID), Account: strings.TrimSpace(e.Account), Region: strings.TrimSpace(e.Region),
		Time: issued, Message: fmt.Sprintf("AWS Health event of %s: %s is %s", h.Service, h.Code, h.Status),
	}
	if r.ID == "" {
		r.ID = h.subject() + " " + h.Status + " " + h.Updated
	}
	if h.Start != "" {
		r.Message += ", from " + h.Start
	}
	return r, nil
}
