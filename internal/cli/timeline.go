package cli

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// entry is one line of the output of `watch`.
type entry struct {
	Time time.Time `json:"time"`
	// SecondsSinceNotice counts from when Lifeboat received the first notice of
	// this interruption.
	SecondsSinceNotice float64       `json:"secondsSinceNotice"`
	Interruption       string        `json:"interruption"`
	InstanceID         string        `json:"instanceID"`
	Node               string        `json:"node"`
	Kind               string        `json:"kind"`
	Phase              v1beta1.Phase `json:"phase"`
	Reason             string        `json:"reason"`
	Message            string        `json:"message"`
}

// timeline returns each entry of each Interruption once, however often the
// Interruption is seen. The record's timeline is bounded and drops its middle
// entries first, so entries are identified by content, not by index.
type timeline struct {
	returned map[types.UID]map[v1beta1.TimelineEntry]bool
}

func newTimeline() *timeline {
	return &timeline{returned: map[types.UID]map[v1beta1.TimelineEntry]bool{}}
}

// news returns the entries that were not returned before, oldest first.
func (t *timeline) news(in *v1beta1.Interruption) []entry {
	returned := t.returned[in.UID]
	if returned == nil {
		returned = map[v1beta1.TimelineEntry]bool{}
		t.returned[in.UID] = returned
	}
	origin := record.FirstNotice(in)
	var news []entry
	for _, e := range in.Status.Timeline {
		key := e
		key.Time.Time = e.Time.UTC() // as a map key, a time must not carry a location
		if returned[key] {
			continue
		}
		returned[key] = true
		news = append(news, entry{
			Time:               e.Time.UTC(),
			SecondsSinceNotice: e.Time.Sub(origin).Round(time.Millisecond).Seconds(),
			Interruption:       in.Name,
			InstanceID:         in.Spec.InstanceID,
			Node:               record.NodeName(in),
			Kind:               in.Status.Kind,
			Phase:              in.Status.Phase,
			Reason:             e.Reason,
			Message:            e.Message,
		})
	}
	slices.SortStableFunc(news, func(a, b entry) int { return a.Time.Compare(b.Time) })
	return news
}

// line formats an entry for people.
func (e entry) line(s terminal.Stream) string {
	offset := terminal.Offset(time.Duration(e.SecondsSinceNotice * float64(time.Second)))
	return fmt.Sprintf("%-8s  %s  %s  %s\n", offset, s.Paint(terminal.Bold, e.Node), s.Paint(styleOf(e.Reason), fmt.Sprintf("%-14s", e.Reason)), terminal.Line(e.Message))
}

func styleOf(reason string) terminal.Style {
	switch view.ReasonTone(reason) {
	case view.Bad:
		return terminal.Bad
	case view.Warn:
		return terminal.Warn
	case view.Good:
		return terminal.Good
	}
	return terminal.Plain
}

// isAbout reports whether name is the node, instance or name of an
// Interruption.
func isAbout(in *v1beta1.Interruption, name string) bool {
	return name == in.Status.NodeName || name == in.Spec.NodeName || name == in.Spec.InstanceID || name == in.Name
}
