package health

import (
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Category is the kind of an event (AWS Health User Guide, EventBridge event schema).
type Category string

// The categories of events.
const (
	ScheduledChange     Category = "scheduledChange"
	Issue               Category = "issue"
	AccountNotification Category = "accountNotification"
	Investigation       Category = "investigation"
)

// Status is the status of an event.
type Status string

// The status codes of events.
const (
	Upcoming Status = "upcoming"
	Open     Status = "open"
	Closed   Status = "closed"
)

// The status of an affected entity.
const (
	Pending  = "PENDING"
	Impaired = "IMPAIRED"
	Resolved = "RESOLVED"
	Unknown  = "UNKNOWN"
)

// Event is an event of AWS Health.
type Event struct {
	// ARN is set by Open if it is empty.
	ARN string
	// Service is EC2, EBS or another; default EC2.
	Service string
	// Code is the event type code, such as AWS_EC2_INSTANCE_STOP_SCHEDULED.
	Code string
	// Category defaults to ScheduledChange.
	Category Category
	// Public makes it an event of the region and not of the account.
	Public bool
	// Region is the region of the event; default: that of the State.
	Region string
	// Status is set by State.
	Status Status
	// Start and End are the times of the event; a zero End is unknown.
	Start, End  time.Time
	Description string
	// Entities are the affected entities; events of the whole account often have none.
	Entities []Entity
	Form     Form
}

// Entity is something that an event affects.
type Entity struct {
	// ID is an id such as i-…, vol-… or h-…, or any other text.
	ID string
	// Status defaults to Pending for future events, and to Impaired otherwise.
	Status string
	Tags   map[string]string
}

// Form is the form of an event, which differs between AWS's own samples.
type Form struct {
	// BareIDs names entities by their ids and not by their ARNs.
	BareIDs bool
	// NoResources leaves out the list of resources.
	NoResources bool
	// PageSize splits events with more entities into pages; zero: no pages.
	PageSize int
	// Backup marks the copy that the region's backup region gets. It is sent on the
	// bus of this region, so that Region should be another.
	Backup bool
}

// clone is a copy that shares no entities with the original.
func (e Event) clone() Event {
	e.Entities = slices.Clone(e.Entities)
	return e
}

// over reports whether the event affects no entity any more.
func (e Event) over() bool {
	return !slices.ContainsFunc(e.Entities, func(x Entity) bool { return x.Status != Resolved })
}

// set gives all entities a status.
func (e *Event) set(status string) {
	for i := range e.Entities {
		e.Entities[i].Status = status
	}
}

// value is the event's name of an entity.
func (f Form) value(id string, scope wire.Scope) string {
	if f.BareIDs {
		return id
	}
	for prefix, kind := range map[string]string{"i-": "instance/", "vol-": "volume/", "h-": "dedicated-host/"} {
		if strings.HasPrefix(id, prefix) {
			return scope.ARN("ec2", kind+id)
		}
	}
	return id
}

// pages splits entities; there is always at least one page.
func (f Form) pages(list []Entity) [][]Entity {
	if f.PageSize <= 0 || len(list) <= f.PageSize {
		return [][]Entity{list}
	}
	return slices.Collect(slices.Chunk(list, f.PageSize))
}
