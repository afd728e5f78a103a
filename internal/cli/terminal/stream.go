// Package terminal formats output for people: colours and a progress line on a
// terminal, plain lines elsewhere, and tables and relative times.
package terminal

import (
	"fmt"
	"io"
	"os"

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

// Paint applies a style if the stream has colours.
func (s Stream) Paint(style Style, text string) string {
	if !s.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Printf writes formatted text. It drops errors: if the reader is gone, the
// program cannot report them anywhere.
func (s Stream) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s, format, args...)
}
