package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// tick is how often the countdowns are drawn anew.
const tick = time.Second

// watchTable is the live table of `watch --table`: a line per interruption,
// redrawn in place. It is safe for concurrent use.
type watchTable struct {
	stream  terminal.Stream
	now     func() time.Time
	picture *terminal.Picture

	mu      sync.Mutex
	records map[types.UID]*v1alpha1.Interruption
	// note stands under the table: what went wrong last.
	note string
	// listed is set once all that exist have been seen.
	listed bool
}

func newWatchTable(s *session) *watchTable {
	return &watchTable{
		stream: s.out, now: s.now, picture: terminal.NewPicture(s.out), records: map[types.UID]*v1alpha1.Interruption{},
	}
}

// run draws until the context ends.
func (t *watchTable) run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.change(func() {})
		}
	}
}

// saw takes a record in. What was over before anybody looked is not shown.
func (t *watchTable) saw(in *v1alpha1.Interruption) {
	t.change(func() {
		if _, known := t.records[in.UID]; known || !isCompleted(in) {
			t.records[in.UID] = in
		}
	})
}

// all notes that all that exist have been seen.
func (t *watchTable) all() { t.change(func() { t.listed = true }) }

// warn puts a note under the table.
func (t *watchTable) warn(text string) { t.change(func() { t.note = text }) }

// change changes what is shown and draws it.
func (t *watchTable) change(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	if !t.listed {
		return // one line after the other would flicker
	}
	all := make([]*v1alpha1.Interruption, 0, len(t.records))
	for _, in := range t.records {
		all = append(all, in)
	}
	t.picture.Draw(drawTable(t.stream.Measured(), all, t.note, t.now()))
}

// drawTable is the table as it looks on a stream at a moment: those under way
// first, the earliest deadline first among them. It is no larger than the
// stream.
func drawTable(s terminal.Stream, all []*v1alpha1.Interruption, note string, now time.Time) string {
	var out strings.Builder
	s.Writer = &out
	all = slices.SortedFunc(slices.Values(all), soonest)
	room := math.MaxInt
	if s.Height > 0 {
		room = max(s.Height-4, 1) // the heading, what is left out, the note, the cursor
	}
	table := terminal.NewTable("NODE", "KIND", "ACTION", "PHASE", "DEADLINE", "MOVED", "WAITING", "WAITS FOR")
	for _, in := range all[:min(len(all), room)] {
		table.Row(tableRow(in, now)...)
	}
	columns := s.Width
	if columns == 0 {
		columns = math.MaxInt
	}
	if len(all) == 0 {
		s.Printf("no interruption is under way\n")
	} else {
		table.WriteCut(s, columns)
	}
	if more := len(all) - room; more > 0 {
		s.Printf("and %d more\n", more)
	}
	if note != "" {
		if len([]rune(note)) > columns {
			note = string([]rune(note)[:columns-1]) + "…"
		}
		s.Printf("%s\n", s.Paint(terminal.Warn, note))
	}
	return out.String()
}

// soonest is the order of the table.
func soonest(a, b *v1alpha1.Interruption) int {
	over := func(in *v1alpha1.Interruption) int {
		if isSettled(in) {
			return 1
		}
		return 0
	}
	until := func(in *v1alpha1.Interruption) time.Time {
		if d := in.Status.Deadline; d != nil {
			return d.Time.Time
		}
		return time.Unix(math.MaxInt32, 0)
	}
	return cmp.Or(cmp.Compare(over(a), over(b)), until(a).Compare(until(b)), cmp.Compare(nodeOf(a), nodeOf(b)), cmp.Compare(a.Name, b.Name))
}

func tableRow(in *v1alpha1.Interruption, now time.Time) []terminal.Cell {
	s := &in.Status
	action, deadline := "", terminal.Cell{}
	if s.Decision != nil {
		action = string(s.Decision.Action)
	}
	if d := s.Deadline; d != nil && !isSettled(in) {
		deadline = terminal.Cell{Text: terminal.Relative(d.Time.Time, now)}
		switch left := d.Time.Sub(now); {
		case d.Type == v1alpha1.DeadlineSoft:
		case left < 30*time.Second:
			deadline.Style = terminal.Bad
		default:
			deadline.Style = terminal.Warn
		}
	}
	moved := ""
	if record.Drain(s).Pods.Total > 0 {
		moved = fmt.Sprintf("%d/%d", record.Drain(s).Pods.Moved, record.Drain(s).Pods.Total)
	}
	waiting := ""
	if record.Drain(s).Pods.Waiting > 0 {
		waiting = fmt.Sprint(record.Drain(s).Pods.Waiting)
	}
	return []terminal.Cell{
		{Text: nodeOf(in), Style: terminal.Bold}, {Text: cmp.Or(s.Kind, newestKind(in))}, {Text: action},
		{Text: string(s.Phase), Style: phaseStyle(in)}, deadline, {Text: moved}, {Text: waiting}, {Text: waitsFor(in), Style: terminal.Dim},
	}
}

// newestKind is the kind of a record that nobody has looked at yet.
func newestKind(in *v1alpha1.Interruption) string {
	if n := len(in.Spec.Notices); n > 0 {
		return in.Spec.Notices[n-1].Kind
	}
	return ""
}

func phaseStyle(in *v1alpha1.Interruption) terminal.Style {
	switch {
	case record.Drain(&in.Status).Pods.Lost > 0:
		return terminal.Bad
	case isSettled(in):
		return terminal.Good
	case in.Status.Phase == v1alpha1.PhaseAwaitingApproval, in.Status.Phase == v1alpha1.PhaseQueued:
		return terminal.Warn
	}
	return terminal.Plain
}

// waitsFor is what the record waits for: as a whole, or its first pod that does.
func waitsFor(in *v1alpha1.Interruption) string {
	for _, left := range record.Drain(&in.Status).PendingPods {
		if left.Verdict == "Waits" {
			return left.Namespace + "/" + left.Name + " " + left.Reason
		}
	}
	return statusMessage(in)
}
