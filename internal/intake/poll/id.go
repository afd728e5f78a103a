package poll

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// maxID is the most that the CRD takes as the id of a notice.
const maxID = 128

// ID makes the id of a notice out of what it says, so that whoever sees the
// same says the same. The moment at which it was seen must not be a part of it.
func ID(parts ...string) string {
	id := strings.Join(parts, "/")
	if len(id) <= maxID && isPlain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return parts[0] + "/sha256-" + hex.EncodeToString(sum[:])
}

func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Moment writes a time as a part of an id; no time is written as nothing.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// years within which a time is plausible: EC2 began in 2006, and what is too
// far away could not be recorded.
const oldest, newest = 2006, 9000

// Plausible reports whether t can be a time that a cloud means.
func Plausible(t time.Time) bool { return t.UTC().Year() >= oldest && t.UTC().Year() <= newest }
