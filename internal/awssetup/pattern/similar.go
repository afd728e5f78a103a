package pattern

import (
	"strings"
	"unicode/utf8"

	"github.com/lifeboat-dev/lifeboat/internal/text/levenshtein"
)

// maxCompared limits the length of texts that are compared.
const maxCompared = 128

// similar reports whether one sentence can be a misspelling of the other: at most a third differs.
func similar(a, b string) bool {
	if len(a) > maxCompared || len(b) > maxCompared || a == b {
		return false
	}
	return 3*levenshtein.Distance(a, b) <= max(len(a), len(b))
}

// nearest returns the candidate that is most similar to the text, or "".
func nearest(text string, candidates []string) string {
	best, least := "", 0
	for _, c := range candidates {
		if !similar(text, c) {
			continue
		}
		if d := levenshtein.Distance(text, c); best == "" || d < least {
			best, least = c, d
		}
	}
	return best
}

// normalizeKey removes case, hyphens, underscores and spaces from a key: detailType, DetailType and detail-type are
// equal.
func normalizeKey(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, foldCase(key))
}

// similarKey returns the key that the given one probably stands for, or "".
func similarKey(key string, keys []string) string {
	for _, k := range keys {
		if k != key && normalizeKey(k) == normalizeKey(key) {
			return k
		}
	}
	if n := utf8.RuneCountInString(key); n < 4 || len(key) > maxCompared {
		return ""
	}
	for _, k := range keys {
		if k != key && len(k) >= 4 && len(k) <= maxCompared && levenshtein.Distance(k, key) <= max(1, len(key)/6) {
			return k
		}
	}
	return ""
}

// keysOf returns the distinct keys of an object.
func keysOf(n *node) []string {
	var keys []string
	seen := map[string]bool{}
	for _, m := range n.members {
		if !seen[m.key] {
			seen[m.key] = true
			keys = append(keys, m.key)
		}
	}
	return keys
}
