package poll

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// maxID is the CRD's limit on the id of a notice.
const maxID = 128

// ID derives the id of a notice from its content, so that every observer of the
// same facts derives the same id. The time of the observation must not be a
// part.
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

// Moment formats a time as a part of an id; the zero time is empty.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// oldest and newest are the plausible years: EC2 began in 2006, and the API
// cannot store years far in the future.
const oldest, newest = 2006, 9000

// Plausible reports whether t can be a real time.
func Plausible(t time.Time) bool { return t.UTC().Year() >= oldest && t.UTC().Year() <= newest }
