// Package conformance holds the cases that both engines for event patterns and both engines for
// queue policies must pass: those of the product, and those of the AWS emulator.
//
// The engines share no code, so that the emulator does not confirm a mistake of the product.
// Each case names the page of the public documentation that it follows.
package conformance

import (
	_ "embed" // the cases are embedded
	"encoding/json"
	"testing"
)

//go:embed patterns.json
var patterns []byte

// Pattern is an event pattern with an event, and the expected result.
type Pattern struct {
	From    string          `json:"from"`
	Name    string          `json:"name"`
	Pattern json.RawMessage `json:"pattern"`
	Event   json.RawMessage `json:"event"`
	// Want is Match, NoMatch or Invalid.
	Want string `json:"want"`
}

// The expected results for patterns.
const (
	Match   = "match"
	NoMatch = "no match"
	Invalid = "invalid"
)

// Patterns returns the cases for event patterns.
func Patterns(t testing.TB) []Pattern {
	t.Helper()
	return read[Pattern](t, patterns)
}

//go:embed queuepolicies.json
var queuePolicies []byte

// QueuePolicy is a policy with a request, and the expected result.
type QueuePolicy struct {
	From    string          `json:"from"`
	Name    string          `json:"name"`
	Policy  json.RawMessage `json:"policy"`
	Request struct {
		Service  string            `json:"service"`
		ARN      string            `json:"arn"`
		Account  string            `json:"account"`
		Action   string            `json:"action"`
		Resource string            `json:"resource"`
		Keys     map[string]string `json:"keys"`
	} `json:"request"`
	// Want is Allow, Deny, Silent or Invalid.
	Want string `json:"want"`
}

// The expected results for policies; Silent means that no statement applies.
const (
	Allow  = "allow"
	Deny   = "deny"
	Silent = "silent"
)

// QueuePolicies returns the cases for queue policies.
func QueuePolicies(t testing.TB) []QueuePolicy {
	t.Helper()
	return read[QueuePolicy](t, queuePolicies)
}

func read[T any](t testing.TB, text []byte) (cases []T) {
	t.Helper()
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatalf("reading the cases: %v", err)
	}
	return cases
}
