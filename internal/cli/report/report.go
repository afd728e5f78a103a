// Package report sums up what interruptions did to a cluster: what came, what was done, and which
// pods were lost. It is pure.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Report is what happened in a span of time.
type Report struct {
	Cluster string    `json:"cluster,omitempty"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Gaps says what the report does not contain.
	Gaps []string `json:"gaps"`
	// Kinds sums up the interruptions by kind.
	Kinds []Kind `json:"kinds"`
	Total Counts `json:"total"`
	// Interruptions are all of them, the latest first.
	Interruptions []Interruption `json:"interruptions"`
}

// Counts are sums over several interruptions.
type Counts struct {
	Interruptions int `json:"interruptions"`
	Open          int `json:"open"`
	PodsMoved     int `json:"podsMoved"`
	PodsLost      int `json:"podsLost"`
	// LeastSpareSeconds is the shortest time between the end of a drain and its deadline;
	// negative: the drain ended after it. Nil: there was no drain with a hard deadline.
	LeastSpareSeconds *float64 `json:"leastSpareSeconds,omitempty"`
}

// Kind is the sum of the interruptions of one kind.
type Kind struct {
	Kind string `json:"kind"`
	Counts
}

// Interruption is one row of the report.
type Interruption struct {
	Name  string    `json:"name"`
	Node  string    `json:"node"`
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"`
	Drill bool      `json:"drill,omitempty"`
	// Sources are the sources that reported it.
	Sources   []string       `json:"sources"`
	Action    v1beta1.Action `json:"action"`
	Policy    string         `json:"policy,omitempty"`
	Phase     v1beta1.Phase  `json:"phase"`
	PodsMoved int            `json:"podsMoved"`
	PodsLost  int            `json:"podsLost"`
	// SpareSeconds is the time from the end of the drain to its hard deadline.
	SpareSeconds *float64 `json:"spareSeconds,omitempty"`
	// Notes are what a reader should look at.
	Notes []string `json:"notes,omitempty"`
}

// Facts is the input of a report.
type Facts struct {
	Cluster  string
	From, To time.Time
	All      []v1beta1.Interruption
	// Kept is how long the controller keeps Interruptions that are completed; zero: not known.
	Kept time.Duration
}

// New returns the report.
func New(f Facts) Report {
	r := Report{Cluster: f.Cluster, From: f.From, To: f.To, Gaps: gaps(f), Kinds: []Kind{}, Interruptions: []Interruption{}}
	kinds := map[string]*Counts{}
	for i := range f.All {
		row := rowOf(&f.All[i])
		if !touches(&f.All[i], row.At, f) {
			continue
		}
		r.Interruptions = append(r.Interruptions, row)
		if kinds[row.Kind] == nil {
			kinds[row.Kind] = &Counts{}
		}
		open := !notice.Finished(&f.All[i])
		kinds[row.Kind].add(row, open)
		r.Total.add(row, open)
	}
	for kind, c := range kinds {
		r.Kinds = append(r.Kinds, Kind{Kind: kind, Counts: *c})
	}
	slices.SortFunc(r.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Interruptions, a.Interruptions), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(r.Interruptions, func(a, b Interruption) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Name, b.Name)) })
	return r
}

// touches reports whether an interruption was under way in the span of the report.
func touches(in *v1beta1.Interruption, at time.Time, f Facts) bool {
	done := in.Status.CompletionTime
	return !at.After(f.To) && (done == nil || !done.Time.Before(f.From))
}

// gaps says what retention has deleted.
func gaps(f Facts) []string {
	const each = "an Interruption keeps only its latest drain: earlier drains of the same instance are not counted"
	switch {
	case f.Kept == 0:
		return []string{"completed Interruptions are deleted after some time, and the controller's --ttl could not be read: earlier ones may be missing", each}
	case f.To.Add(-f.Kept).After(f.From):
		return []string{fmt.Sprintf("completed Interruptions are kept for %s: those completed before %s are missing. "+
			"To keep them longer, set the chart value controller.ttl", span(f.Kept), f.To.Add(-f.Kept).UTC().Format(time.RFC3339)), each}
	}
	return []string{each}
}

func span(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (c *Counts) add(row Interruption, open bool) {
	c.Interruptions++
	if open {
		c.Open++
	}
	c.PodsMoved += row.PodsMoved
	c.PodsLost += row.PodsLost
	if s := row.SpareSeconds; s != nil && (c.LeastSpareSeconds == nil || *s < *c.LeastSpareSeconds) {
		c.LeastSpareSeconds = s
	}
}

func rowOf(in *v1beta1.Interruption) Interruption {
	counts := record.Drain(&in.Status).PodCounts
	row := Interruption{
		Name: in.Name, Node: record.NodeName(in), Kind: cmp.Or(in.Status.Kind, "Pending"), At: record.FirstNotice(in).UTC(), Drill: record.IsDrill(in),
		Sources: sources(in), Phase: in.Status.Phase, PodsMoved: int(counts.Moved), PodsLost: int(counts.Lost), SpareSeconds: spare(in),
	}
	if d := in.Status.Decision; d != nil {
		row.Action, row.Policy = d.Action, d.Policy
	}
	row.Notes = notes(in, row)
	return row
}

func sources(in *v1beta1.Interruption) []string {
	names := []string{}
	for i := range in.Spec.Notices {
		if name := in.Spec.Notices[i].Source; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// spare is the time from the end of the drain to its hard deadline.
func spare(in *v1beta1.Interruption) *float64 {
	c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionDrained)
	d := in.Status.Deadline
	if c == nil || c.Status != "True" || d == nil || d.Type != v1beta1.DeadlineHard {
		return nil
	}
	left := d.Time.Sub(c.LastTransitionTime.Time).Seconds()
	return &left
}

func notes(in *v1beta1.Interruption, row Interruption) []string {
	var all []string
	if text := compared(in); text != "" {
		all = append(all, text)
	}
	if row.PodsLost > 0 {
		all = append(all, fmt.Sprintf("%d pods were still on the node when its instance stopped", row.PodsLost))
	}
	if c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionWiringDegraded); c != nil && c.Reason != v1beta1.ReasonNoticeReceived {
		all = append(all, "the queue did not deliver the notice")
	}
	if record.IsPaused(in) {
		all = append(all, "a pause stops it")
	}
	for i := range in.Status.Timeline {
		e := &in.Status.Timeline[i]
		switch e.Reason {
		case v1beta1.ReasonProtectionOverridden, v1beta1.ReasonHookFailed, v1beta1.ReasonReplacementFailed, v1beta1.ReasonNotifyFailed:
			all = append(all, e.Message)
		}
	}
	return all
}
