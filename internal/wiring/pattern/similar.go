package pattern

import (
	"strings"
	"unicode/utf8"

	"github.com/lifeboat-dev/lifeboat/internal/likeness"
)

// longestCompared bounds the work of comparing two texts for likeness.
const longestCompared = 128

// alike says whether two sentences are near enough that one may be a slip for the other: at most a third differs.
func alike(a, b string) bool {
	if len(a) > longestCompared || len(b) > longestCompared || a == b {
		return false
	}
	return 3*likeness.Distance(a, b) <= max(len(a), len(b))
}

// nearest returns the candidate most like the text, or "".
func nearest(text string, candidates []string) string {
	best, least := "", 0
	for _, c := range candidates {
		if !alike(text, c) {
			continue
		}
		if d := likeness.Distance(text, c); best == "" || d < least {
			best, least = c, d
		}
	}
	return best
}

// bare is a key without case, hyphens, underscores and spaces: detailType, DetailType and detail-type are alike.
func bare(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, foldCase(key))
}

// misspelt returns the key that the given one probably stands for, or "".
func misspelt(key string, keys []string) string {
	for _, k := range keys {
		if k != key && bare(k) == bare(key) {
			return k
		}
	}
	if n := utf8.RuneCountInString(key); n < 4 || len(key) > longestCompared {
		return ""
	}
	for _, k := range keys {
		if k != key && len(k) >= 4 && len(k) <= longestCompared && likeness.Distance(k, key) <= max(1, len(key)/6) {
			return k
		}
	}
	return ""
}

// keysOf are the distinct keys of an object.
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
