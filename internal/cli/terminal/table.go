package terminal

import (
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
}

// NewTable returns a table with these headings.
func NewTable(header ...string) *Table {
	return &Table{header: header}
}

// Row adds a row. Cells beyond the headings are dropped, missing ones are
// empty.
func (t *Table) Row(cells ...Cell) {
	row := make([]Cell, len(t.header))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

// Write writes the table, two spaces between columns, nothing after the last
// one. The last column may be long: it is never padded.
func (t *Table) Write(s Stream) {
	widths := make([]int, len(t.header))
	for i, h := range t.header {
		widths[i] = utf8.RuneCountInString(h)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	head := make([]Cell, len(t.header))
	for i, h := range t.header {
		head[i] = Cell{Text: h, Style: Dim}
	}
	for _, row := range append([][]Cell{head}, t.rows...) {
		writeRow(s, row, widths)
	}
}

func writeRow(s Stream, row []Cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	var line strings.Builder
	for i, c := range row[:last+1] {
		line.WriteString(s.Paint(c.Style, c.Text))
		if i < last {
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+2))
		}
	}
	s.Printf("%s\n", line.String())
}
