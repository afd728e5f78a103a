package pattern

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// SyntaxError explains why a pattern is refused.
type SyntaxError struct {
	// Reason is the reference engine's own text, for example `"state" must be an object or an array`.
	Reason string `json:"reason"`
	// Path is the position in the pattern, for example detail.state; empty at the top.
	Path string `json:"path,omitempty"`
	// Offset is the number of bytes read before the error.
	Offset int `json:"offset"`
	// Line and Column are the same position counted from 1, as AWS reports it.
	Line   int `json:"line"`
	Column int `json:"column"`

	source []byte
}

// maxQuote is the number of characters of the pattern that AWS quotes in its message.
const maxQuote = 500

// Error returns the message of EventBridge's InvalidEventPatternException, word for word if the reason is AWS's.
func (e *SyntaxError) Error() string {
	source, rest := e.source, ""
	if runes := utf8.RuneCount(source); runes > maxQuote {
		cut := 0
		for range maxQuote {
			_, size := utf8.DecodeRune(source[cut:])
			cut += size
		}
		source, rest = source[:cut], fmt.Sprintf("[truncated %d chars]", runes-maxQuote)
	}
	return fmt.Sprintf("Event pattern is not valid. Reason: %s\n at [Source: (String)\"%s\"%s; line: %d, column: %d]",
		e.Reason, source, rest, e.Line, e.Column)
}

func newSyntaxError(source []byte, offset int, path, reason string) *SyntaxError {
	offset = min(max(offset, 0), len(source))
	before := source[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Reason: reason,
		Path:   path,
		Offset: offset,
		Line:   1 + bytes.Count(before, []byte{'\n'}),
		Column: 1 + utf8.RuneCount(before[start:]),
		source: bytes.Clone(source),
	}
}
