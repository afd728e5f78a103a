package health

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
)

// detail is the detail of an event (AWS Health User Guide, EventBridge event schema). Page,
// TotalPages and BackupEvent are strings there.
type detail struct {
	EventARN      string            `json:"eventArn"`
	Service       string            `json:"service"`
	Code          string            `json:"eventTypeCode"`
	Category      Category          `json:"eventTypeCategory"`
	Scope         string            `json:"eventScopeCode"`
	Communication string            `json:"communicationId"`
	Start         string            `json:"startTime"`
	End           string            `json:"endTime,omitempty"`
	Updated       string            `json:"lastUpdatedTime"`
	Status        Status            `json:"statusCode"`
	Region        string            `json:"eventRegion"`
	Description   []description     `json:"eventDescription"`
	Metadata      map[string]string `json:"eventMetadata,omitempty"`
	Entities      []entity          `json:"affectedEntities"`
	Account       string            `json:"affectedAccount"`
	Page          string            `json:"page"`
	TotalPages    string            `json:"totalPages"`
	BackupEvent   string            `json:"backupEvent"`
	Actionability string            `json:"actionability"`
	Personas      []string          `json:"personas"`
}

type description struct {
	Language string `json:"language"`
	Text     string `json:"latestDescription"`
}

type entity struct {
	Value   string            `json:"entityValue"`
	Status  string            `json:"status"`
	Updated string            `json:"lastUpdatedTime"`
	Tags    map[string]string `json:"tags,omitempty"`
}

// date writes a time as Health does: the day of the month has no leading zero.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("Mon, 2 Jan 2006 15:04:05 GMT")
}

// send emits the current state of an event, page by page. It needs the lock.
func (s *State) send(r *record) {
	e := r.Event
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", e.ARN, r.revision))
	d := detail{
		EventARN: e.ARN, Service: e.Service, Code: e.Code, Category: e.Category, Scope: "ACCOUNT_SPECIFIC",
		Start: date(e.Start), End: date(e.End), Updated: date(r.updated), Status: e.Status, Region: e.Region,
		Description: []description{{"en_US", e.Description}}, Account: s.scope.Account,
		BackupEvent: strconv.FormatBool(e.Form.Backup), Actionability: "ACTION_REQUIRED", Personas: []string{"OPERATIONAL"},
	}
	if e.Public {
		d.Scope = "PUBLIC"
	}
	pages := e.Form.pages(e.Entities)
	d.TotalPages = strconv.Itoa(len(pages))
	for i, page := range pages {
		d.Page, d.Entities = strconv.Itoa(i+1), []entity{}
		d.Communication = hex.EncodeToString(sum[:]) + "-" + d.Page
		resources := []string{}
		for _, x := range page {
			value := e.Form.value(x.ID, s.scope)
			resources = append(resources, value)
			d.Entities = append(d.Entities, entity{value, x.Status, d.Updated, x.Tags})
		}
		s.emit(events.Event{
			Source: "aws.health", DetailType: "AWS Health Event", Time: r.updated, Resources: resources,
			Detail: events.Detail(d), NoResources: e.Form.NoResources,
		})
	}
}
