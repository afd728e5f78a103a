// Package terminal formats output for people: colours and a progress line on a
// terminal, plain lines elsewhere, and tables and relative times.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Stream is standard output or standard error.
type Stream struct {
	io.Writer
	// TTY is true if the output is a terminal, where lines can be redrawn.
	TTY bool
	// Color is true if text can be coloured.
	Color bool
	// Width is the number of columns and Height the number of lines. Both are 0
	// if unknown.
	Width, Height int
	// deferred is true if another stream writes the text.
	deferred bool
}

// NewStream inspects w. Colours need a terminal that is not "dumb" and an empty
// NO_COLOR (no-color.org).
func NewStream(w io.Writer, getenv func(string) string) Stream {
	s := Stream{Writer: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.TTY = getenv("TERM") != "dumb"
	s.Color = s.TTY && getenv("NO_COLOR") == ""
	return s.Measured()
}

// Measured returns the stream with the current size of its terminal, which can
// change.
func (s Stream) Measured() Stream {
	f, ok := s.Writer.(*os.File)
	if !ok {
		return s
	}
	if width, height, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width, s.Height = width, height
	}
	return s
}

// IsTerminal reports whether r is a terminal.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is the colour of a piece of text.
type Style string

// The styles: normal, success, warning, error, less important, and heading.
const (
	Plain Style = ""
	Good  Style = "32"
	Warn  Style = "33"
	Bad   Style = "31"
	Dim   Style = "2"
	Bold  Style = "1"
)

// Paint puts text into one line and applies a style if the stream has colours.
func (s Stream) Paint(style Style, text string) string {
	text = Line(text)
	if !s.Color || style == Plain || text == "" {
		return text
	}
	return mark + string(style) + "m" + text + mark + "0m"
}

// Printf writes formatted text. Every text among the arguments becomes one line, unless the
// format is %s or %s\n: then it is a block of lines. Printf drops errors: if the reader is
// gone, the program cannot report them anywhere.
func (s Stream) Printf(format string, args ...any) {
	if strings.TrimSuffix(format, "\n") != "%s" {
		args = inLine(args)
	}
	_, _ = fmt.Fprintf(s, format, args...)
}

// control writes text that contains escape sequences of this package. It must contain
// nothing from outside that visible has not cleaned.
func (s Stream) control(text string) { _, _ = io.WriteString(s.Writer, text) }
