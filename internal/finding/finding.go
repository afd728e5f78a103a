// Package finding is what a check of the wiring, of the workloads or of anything
// else has to say: one thing that will go wrong in an interruption, and how to
// mend it. It is pure.
package finding

import (
	"cmp"
	"slices"
)

// Severity is how bad a finding is.
type Severity string

// The severities, worst first.
const (
	// Broken: something that is there to work does not. Notices will not be
	// heard, or pods not be saved.
	Broken Severity = "broken"
	// Unknown: it could not be looked at, so nobody can say whether it works.
	Unknown Severity = "unknown"
	// Warning: it works, but not in every case.
	Warning Severity = "warning"
	// Info: it works, at a price that is worth knowing.
	Info Severity = "info"
)

// Severities returns all severities, worst first.
func Severities() []Severity { return []Severity{Broken, Unknown, Warning, Info} }

// Finding is one thing that a check has found.
type Finding struct {
	Severity Severity `json:"severity"`
	// ID names the kind of finding, such as rule-disabled. It is stable: scripts
	// and the documentation refer to it.
	ID string `json:"id"`
	// Object is what it is about, such as "rule lifeboat-prod-rebalance".
	Object string `json:"object"`
	// Problem says what is wrong and what it does to an interruption.
	Problem string `json:"problem"`
	// Fix is the command or the line that mends it.
	Fix string `json:"fix,omitempty"`
	// Kinds are the kinds of notices that it keeps from being heard; none where
	// it is about all of them, or about none in particular.
	Kinds []string `json:"kinds,omitempty"`
}

// Sort puts the worst first, and otherwise keeps the order.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

func (s Severity) rank() int { return slices.Index(Severities(), s) }

// Has tells whether some finding is of a severity.
func Has(all []Finding, s Severity) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Severity == s })
}
