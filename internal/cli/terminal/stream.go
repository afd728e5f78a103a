// Package terminal writes for people: colours and a moving progress line where
// there is a terminal, plain lines where there is none, tables and relative
// times everywhere.
package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// Stream is a way out: standard output or standard error.
type Stream struct {
	io.Writer
	// TTY is true where a person reads along, so that lines may move.
	TTY bool
	// Color is true where text may be coloured.
	Color bool
	// Width is the number of columns and Height that of lines, or 0 where there
	// is no telling.
	Width, Height int
}

// NewStream looks at what w is. Colours need a terminal that is not "dumb" and
// an empty NO_COLOR (no-color.org).
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

// Measured is the stream with the size that its terminal has now: people change
// it.
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

// IsTerminal reports whether a person types at r.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is how a piece of text looks on a terminal that has colours.
type Style string

// The styles: what went well, what needs a look, what went wrong, what matters
// less, and what a heading is.
const (
	Plain Style = ""
	Good  Style = "32"
	Warn  Style = "33"
	Bad   Style = "31"
	Dim   Style = "2"
	Bold  Style = "1"
)

// Paint gives text a style where the stream has colours.
func (s Stream) Paint(style Style, text string) string {
	if !s.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Printf writes formatted text. A stream whose reader has gone is nothing that
// could be told to anybody, so errors are dropped.
func (s Stream) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s, format, args...)
}
