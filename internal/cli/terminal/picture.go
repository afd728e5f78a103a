package terminal

import (
	"fmt"
	"strings"
)

// Picture is text that is redrawn in place. Its lines must not be wider than the
// terminal, nor more than it has.
type Picture struct {
	stream Stream
	lines  int
	last   string
}

// NewPicture returns one that is drawn where the cursor is.
func NewPicture(s Stream) *Picture { return &Picture{stream: s} }

// Draw draws text, which ends with a line feed, over what was drawn before.
func (p *Picture) Draw(text string) {
	if text == p.last {
		return
	}
	var out strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", p.lines)
	}
	for line := range strings.Lines(text) {
		out.WriteString("\r\x1b[K" + line)
	}
	out.WriteString("\x1b[J")
	p.stream.Printf("%s", out.String())
	p.lines, p.last = strings.Count(text, "\n"), text
}
