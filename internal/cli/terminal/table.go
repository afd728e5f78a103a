package terminal

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table is text in columns.
type Table struct {
	header []string
	rows   [][]Cell
	// under holds the text under a row, by row number.
	under map[int][]Cell
}

// NewTable returns a table with these headings.
func NewTable(header ...string) *Table {
	return &Table{header: header, under: map[int][]Cell{}}
}

// Row adds a row. It drops cells beyond the headings and fills missing ones. A cell is one
// line.
func (t *Table) Row(cells ...Cell) {
	row := make([]Cell, len(t.header))
	for i := range min(len(cells), len(row)) {
		row[i] = Cell{Text: Line(cells[i].Text), Style: cells[i].Style} //nolint:gosec // G602: i is below both lengths
	}
	t.rows = append(t.rows, row)
}

// Under adds wrapped text under the last row, for text that is too long for a
// column.
func (t *Table) Under(text Cell) {
	last := len(t.rows) - 1
	t.under[last] = append(t.under[last], text)
}

// Write writes the table with two spaces between columns. The last column is
// not padded.
func (t *Table) Write(s Stream) { t.write(s, math.MaxInt) }

// WriteFit is like Write for a given number of columns. The text of the last column goes under its
// row where it does not fit, and no part of it is lost. Other columns are cut.
func (t *Table) WriteFit(s Stream, columns int) {
	last := len(t.header) - 1
	lead := 0
	for _, width := range t.widths()[:last] {
		lead += width + 2
	}
	fit := &Table{header: t.header, under: map[int][]Cell{}}
	for i, row := range t.rows {
		fit.rows, fit.under[i] = append(fit.rows, slices.Clone(row)), t.under[i]
		if text := row[last]; text.Text != "" && lead+utf8.RuneCountInString(text.Text) > columns {
			fit.rows[i][last] = Cell{}
			fit.under[i] = append([]Cell{text}, t.under[i]...)
		}
	}
	fit.write(s, columns)
}

// widths are the widths of the columns.
func (t *Table) widths() []int {
	widths := make([]int, len(t.header))
	for i, h := range t.header {
		widths[i] = utf8.RuneCountInString(h)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	return widths
}

func (t *Table) write(s Stream, room int) {
	widths := t.widths()
	head := make([]Cell, len(t.header))
	for i, h := range t.header {
		head[i] = Cell{Text: h, Style: Dim}
	}
	writeRow(s, head, widths, room)
	for i, row := range t.rows {
		writeRow(s, row, widths, room)
		for _, text := range t.under[i] {
			for _, line := range Wrap(text.Text, s.Columns()-4) {
				s.Printf("    %s\n", s.Paint(text.Style, line))
			}
		}
	}
}

func writeRow(s Stream, row []Cell, widths []int, room int) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	var line strings.Builder
	for i, c := range row[:last+1] {
		text := cut(c.Text, room)
		line.WriteString(s.Paint(c.Style, text))
		if room -= widths[i] + 2; i == last || room <= 0 {
			break
		}
		line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
	}
	s.Printf("%s\n", line.String())
}
