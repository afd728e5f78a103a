package runner

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// longestMessage is the CRD's limit on a status message, in characters.
	longestMessage = 512
	// longestLine bounds the part of a response that a message repeats.
	longestLine = 200
)

// clip shortens a text to that many characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// cleaner returns a function that makes a foreign text safe for a message:
// first line, printable characters, and no parts of the URL that may be secret.
// If the URL comes from a Secret, short parts count as secret too.
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

// firstLine is the first non-empty line, without unprintable characters.
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
