package terminal

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// own are the escape sequences that this package writes.
var own = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m|\x1b\\[K|\x1b\\[J|\x1b\\[[0-9]+A|\r")

// FuzzForeignTextStaysText gives every writer a text from outside. It may neither contain
// an escape sequence nor begin a line of its own.
func FuzzForeignTextStaysText(f *testing.F) {
	f.Add("node\x1b]52;c;aGk=\x07\x1b[2J\x1b[8m")
	f.Add("a\u009b31mb\u202ec\u2066d\r\nFORGED")
	f.Add("x\nFORGED\u2028FORGED\u2029FORGED\vFORGED\fFORGED\u0085FORGED")
	f.Add(mark + "31m\xff\x00;32m")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, mark) {
			return // it is known only in this process
		}
		for _, s := range []Stream{{}, {Color: true}, {Color: true, TTY: true, Width: 60, Height: 10}} {
			var out bytes.Buffer
			s.Writer = &out
			writeEverywhere(s, text)
			shown := own.ReplaceAllString(out.String(), "")
			for _, r := range shown {
				if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
					t.Fatalf("%q: %U in the output %q", text, r, shown)
				}
			}
			if !s.Color && strings.ContainsRune(out.String(), '\x1b') {
				t.Fatalf("%q: an escape sequence in the output %q", text, out.String())
			}
			for line := range strings.Lines(shown) {
				if !strings.HasPrefix(line, "| ") {
					t.Fatalf("%q: the line %q is not the program's", text, line)
				}
			}
		}
	})
}

// writeEverywhere writes text with each writer. Every line of the program begins with "| ".
func writeEverywhere(s Stream, text string) {
	s.Printf("| %s %v %s\n", text, errors.New(text), s.Paint(Bad, text))
	s.Printf("%s", "| "+s.Paint(Bold, text)+" "+Line(text)+"\n")
	table := NewTable("| HEAD", "TWO", "THREE")
	table.Row(Cell{Text: "| " + text, Style: Good}, Cell{Text: text}, Cell{Text: text, Style: Dim})
	table.WriteFit(s, 4000)
	if s.TTY {
		var drawn strings.Builder
		table.Write(s.Into(&drawn))
		NewPicture(s).Draw(drawn.String())
	}
	writeReminder(s, text)
}

func writeReminder(s Stream, text string) {
	if s.TTY {
		return // the moving line is redrawn in place
	}
	p := &Progress{stream: s, stop: make(chan struct{})}
	p.Step("| %s", text)
	p.since = time.Now().Add(-time.Minute)
	p.remind()
}

func TestMovingLineShowsForeignTextInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(Stream{Writer: &out, TTY: true, Color: true, Width: 60})
		p.Step("waiting for %s", "a\x1b[2Jb\nc\u009bd")
		time.Sleep(3 * time.Second)
		p.Stop()
		if shown := own.ReplaceAllString(out.String(), ""); strings.ContainsAny(shown, "\x1b\n\u009b") || !strings.Contains(shown, "waiting for a[2Jb cd") {
			t.Errorf("%q", shown)
		}
	})
}

// Only Paint styles text: the same bytes from outside stay text.
func TestOnlyPaintStylesText(t *testing.T) {
	var out bytes.Buffer
	s := Stream{Writer: &out, Color: true}
	s.Printf("%s and \x1b[31mred\x1b[0m\n", s.Paint(Good, "green"))
	if got, want := out.String(), "\x1b[32mgreen\x1b[0m and [31mred[0m\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONEscapesWhatWriteRemoves(t *testing.T) {
	got := JSON([]byte("{\n\t\"a\": \"x\u009by\u202ez\U000e0001é\u2028\x7f\"\n}"))
	if want := "{\n\t\"a\": \"x\\u009by\\u202ez\\udb40\\udc01é\\u2028\\u007f\"\n}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
