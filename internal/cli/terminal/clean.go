package terminal

import (
	"crypto/rand"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// mark begins a style in text that is not written yet. Text from outside cannot contain it:
// it is another one in each process. Write turns it into an escape sequence.
var mark = "\x00" + rand.Text() + ";"

// Line returns text in one line without control and formatting characters. Text from
// outside could otherwise pass for a line of the program.
func Line(text string) string { return notice.Printable(text) }

// Write writes text. It turns the marks of Paint into escape sequences, and removes all
// other control and formatting characters except line feeds and tabs.
func (s Stream) Write(text []byte) (int, error) {
	if s.deferred {
		return s.Writer.Write(text)
	}
	if _, err := io.WriteString(s.Writer, visible(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Into returns a stream with the same size and colours that writes to a text. The text
// keeps the marks of Paint, and must be written to a stream.
func (s Stream) Into(text *strings.Builder) Stream {
	s.Writer, s.deferred = text, true
	return s
}

// visible returns text as a terminal gets it.
func visible(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(strings.ToValidUTF8(text, "�"), mark) {
		if i > 0 {
			var style string
			style, part, _ = strings.Cut(part, "m")
			out.WriteString("\x1b[" + style + "m")
		}
		out.WriteString(strings.Map(func(r rune) rune {
			if isControl(r) {
				return -1
			}
			return r
		}, part))
	}
	return out.String()
}

func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// JSON returns JSON with escapes for the characters that Write removes.
func JSON(text []byte) string {
	var out strings.Builder
	for _, r := range string(text) {
		if !isControl(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, "\\u%04x", unit)
		}
	}
	return out.String()
}

// inLine returns the arguments of a format with their texts in one line each.
func inLine(args []any) []any {
	lines := make([]any, len(args))
	for i, arg := range args {
		lines[i] = arg
		switch v := arg.(type) {
		case error:
			lines[i] = oneLine(v.Error())
		case string:
			lines[i] = oneLine(v)
		default:
			if kind := reflect.ValueOf(arg); kind.Kind() == reflect.String {
				lines[i] = oneLine(kind.String())
			}
		}
	}
	return lines
}

// oneLine joins lines, and keeps the marks of Paint.
func oneLine(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\u2028", " ", "\u2029", " ").Replace(text)
}
