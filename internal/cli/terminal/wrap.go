package terminal

import (
	"strings"
	"unicode/utf8"
)

// defaultColumns is the number of columns if the width is unknown.
const defaultColumns = 100

// Columns returns the number of columns for text on this stream.
func (s Stream) Columns() int {
	if s.Width == 0 {
		return defaultColumns
	}
	return s.Width
}

// Wrap breaks text at spaces into lines of at most the given number of columns.
// A longer word gets its own line.
func Wrap(text string, columns int) []string {
	var lines []string
	var line strings.Builder
	used := 0
	for _, word := range strings.Fields(text) {
		width := utf8.RuneCountInString(word)
		if used > 0 && used+1+width > columns {
			lines = append(lines, line.String())
			line.Reset()
			used = 0
		}
		if used > 0 {
			line.WriteByte(' ')
			used++
		}
		line.WriteString(word)
		used += width
	}
	return append(lines, line.String())
}

// Fact writes a label and, from a fixed column on, wrapped text.
func (s Stream) Fact(indent int, label string, style Style, text string) {
	for i, line := range Wrap(text, s.Columns()-indent) {
		if i > 0 {
			label = ""
		}
		s.Printf("%s%s%s\n", label, strings.Repeat(" ", max(indent-utf8.RuneCountInString(label), 0)), s.Paint(style, line))
	}
}

// cut shortens text to the given number of columns.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	return string([]rune(text)[:columns-1]) + "…"
}
