package errand

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// longestMessage is what the record's status takes, in characters.
	longestMessage = 512
	// longestLine of an answer is repeated in a message.
	longestLine = 200
)

// clip cuts a text to so many characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// cleaner returns what makes a foreign text fit for a message: its first line,
// without what is no character to be seen, and without what of the URL may be
// secret. Of a URL that is, short parts are taken for secrets as well.
func cleaner(u *url.URL, secret bool) func(string) string {
	const hidden = "…"
	least := 16
	if secret {
		least = 4
	}
	password, _ := u.User.Password()
	parts := []string{u.String(), u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery, u.User.Username(), password}
	parts = append(append(parts, strings.Split(u.EscapedPath(), "/")...), strings.Split(u.Path, "/")...)
	for key, values := range u.Query() {
		parts = append(append(parts, key), values...)
	}
	var pairs []string
	for _, part := range parts {
		if len(part) >= least || part == password && part != "" {
			pairs = append(pairs, part, hidden)
		}
	}
	replacer := strings.NewReplacer(pairs...)
	return func(text string) string { return clip(firstLine(replacer.Replace(text)), longestLine) }
}

// firstLine is the first line that has something in it, as it may be shown.
func firstLine(text string) string {
	for line := range strings.Lines(strings.ToValidUTF8(text, "")) {
		seen := strings.Map(func(r rune) rune {
			if r == '\t' {
				return ' '
			}
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, line)
		if seen = strings.TrimSpace(seen); seen != "" {
			return seen
		}
	}
	return ""
}
