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

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// tick is the time between redraws of the countdowns.
const tick = time.Second

// watchTable is the live table of `watch --table`: one line per interruption,
// redrawn in place. It is safe for concurrent use.
type watchTable struct {
	stream  terminal.Stream
	now     func() time.Time
	picture *terminal.Picture

	mu      sync.Mutex
	records map[types.UID]*v1beta1.Interruption
	// note is the latest warning, printed under the table.
	note string
	// listed is set after the first list was processed.
	listed bool
}

func newWatchTable(s *session) *watchTable {
	return &watchTable{
		stream: s.out, now: s.now, picture: terminal.NewPicture(s.out), records: map[types.UID]*v1beta1.Interruption{},
	}
}

// run redraws until ctx ends.
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

// update adds a record. A record that completed before the watch started is not
// shown.
func (t *watchTable) update(in *v1beta1.Interruption) {
	t.change(func() {
		if _, known := t.records[in.UID]; known || !record.IsCompleted(in) {
			t.records[in.UID] = in
		}
	})
}

// markListed says that the first list was processed.
func (t *watchTable) markListed() { t.change(func() { t.listed = true }) }

// warn sets the note under the table.
func (t *watchTable) warn(text string) { t.change(func() { t.note = text }) }

// change updates the state under the lock and redraws.
func (t *watchTable) change(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	if !t.listed {
		return // drawing line by line would flicker
	}
	all := make([]*v1beta1.Interruption, 0, len(t.records))
	for _, in := range t.records {
		all = append(all, in)
	}
	t.picture.Draw(drawTable(t.stream.Measured(), all, t.note, t.now()))
}

// drawTable renders the table: open interruptions first, by deadline. It is not
// larger than the stream.
func drawTable(s terminal.Stream, all []*v1beta1.Interruption, note string, now time.Time) string {
	var out strings.Builder
	s = s.Into(&out)
	all = slices.SortedFunc(slices.Values(all), tableOrder)
	room := math.MaxInt
	if s.Height > 0 {
		room = max(s.Height-4, 1) // the heading, the omitted lines, the note, the cursor
	}
	columns := s.Width
	if columns == 0 {
		columns = math.MaxInt
	}
	shown := min(len(all), room)
	text := drawRows(s, all[:shown], columns, now)
	for shown > 1 && strings.Count(text, "\n")-1 > room { // reasons take lines as well
		shown--
		text = drawRows(s, all[:shown], columns, now)
	}
	out.WriteString(text)
	if more := len(all) - shown; more > 0 {
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

// drawRows renders the rows with their heading.
func drawRows(s terminal.Stream, all []*v1beta1.Interruption, columns int, now time.Time) string {
	if len(all) == 0 {
		return "no interruption is in progress\n"
	}
	var out strings.Builder
	table := terminal.NewTable("NODE", "KIND", "ACTION", "PHASE", "DEADLINE", "MOVED", "WAITING", "WAITS FOR")
	for _, in := range all {
		table.Row(tableRow(in, now)...)
	}
	table.WriteFit(s.Into(&out), columns)
	return out.String()
}

// tableOrder is the sort order of the table.
func tableOrder(a, b *v1beta1.Interruption) int {
	over := func(in *v1beta1.Interruption) int {
		if record.IsSettled(in) {
			return 1
		}
		return 0
	}
	until := func(in *v1beta1.Interruption) time.Time {
		if d := in.Status.Deadline; d != nil {
			return d.Time.Time
		}
		return time.Unix(math.MaxInt32, 0)
	}
	return cmp.Or(cmp.Compare(over(a), over(b)), until(a).Compare(until(b)), cmp.Compare(record.NodeName(a), record.NodeName(b)), cmp.Compare(a.Name, b.Name))
}

func tableRow(in *v1beta1.Interruption, now time.Time) []terminal.Cell {
	s := &in.Status
	action, deadline := "", terminal.Cell{}
	if s.Decision != nil {
		action = string(s.Decision.Action)
	}
	if d := s.Deadline; d != nil && !record.IsSettled(in) {
		deadline = terminal.Cell{Text: terminal.Relative(d.Time.Time, now)}
		switch left := d.Time.Sub(now); {
		case d.Type == v1beta1.DeadlineSoft:
		case left < 30*time.Second:
			deadline.Style = terminal.Bad
		default:
			deadline.Style = terminal.Warn
		}
	}
	moved := ""
	if record.Drain(s).PodCounts.Total > 0 {
		moved = fmt.Sprintf("%d/%d", record.Drain(s).PodCounts.Moved, record.Drain(s).PodCounts.Total)
	}
	waiting := ""
	if record.Drain(s).PodCounts.Waiting > 0 {
		waiting = fmt.Sprint(record.Drain(s).PodCounts.Waiting)
	}
	return []terminal.Cell{
		{Text: record.NodeName(in), Style: terminal.Bold}, {Text: cmp.Or(s.Kind, record.NewestKind(in))}, {Text: action},
		{Text: string(s.Phase), Style: phaseStyle(in)}, deadline, {Text: moved}, {Text: waiting}, {Text: record.WaitsFor(in), Style: terminal.Dim},
	}
}

func phaseStyle(in *v1beta1.Interruption) terminal.Style {
	switch {
	case record.Drain(&in.Status).PodCounts.Lost > 0:
		return terminal.Bad
	case record.IsSettled(in):
		return terminal.Good
	case in.Status.Phase == v1beta1.PhaseAwaitingApproval, in.Status.Phase == v1beta1.PhaseQueued:
		return terminal.Warn
	}
	return terminal.Plain
}
