package terminal

import (
	"fmt"
	"strings"
)

// Picture is text that is redrawn in place. It must fit into the terminal, both
// in width and in height.
type Picture struct {
	stream Stream
	lines  int
	last   string
}

// NewPicture returns a picture that starts at the cursor.
func NewPicture(s Stream) *Picture { return &Picture{stream: s} }

// Draw replaces the previous text by text, which must end with a line feed. It may contain
// the marks of Paint.
func (p *Picture) Draw(text string) {
	if text == p.last {
		return
	}
	var out strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", p.lines)
	}
	for line := range strings.Lines(text) {
		out.WriteString("\r\x1b[K" + visible(line))
	}
	out.WriteString("\x1b[J")
	p.stream.control(out.String())
	p.lines, p.last = strings.Count(text, "\n"), text
}
