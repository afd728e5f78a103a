package runner

import (
	"strings"
	"unicode/utf8"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// longestMessage is the CRD's limit on a status message, in characters.
const longestMessage = 512

// clip removes control characters from a text and shortens it to that many characters.
func clip(text string, most int) string {
	text = notice.Printable(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// firstLine is the first non-empty line, without unprintable characters.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if seen := strings.TrimSpace(notice.Printable(line)); seen != "" {
			return seen
		}
	}
	return ""
}
