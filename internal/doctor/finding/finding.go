// Package finding defines the result of a check of the wiring, the workloads or
// another area: one problem for an interruption, and its fix. It is pure.
package finding

import (
	"cmp"
	"slices"
)

// Severity is the impact of a finding.
type Severity string

// The severities, worst first.
const (
	// Broken: an existing part does not work. Notices do not arrive, or pods are
	// lost.
	Broken Severity = "broken"
	// Unknown: the check was not possible.
	Unknown Severity = "unknown"
	// Warning: it works, but not in every case.
	Warning Severity = "warning"
	// Info: it works, at a cost that users should know.
	Info Severity = "info"
)

// Severities returns all severities, worst first.
func Severities() []Severity { return []Severity{Broken, Unknown, Warning, Info} }

// Finding is one problem that a check found.
type Finding struct {
	Severity Severity `json:"severity"`
	// ID names the kind of finding, for example rule-disabled. It is stable: scripts
	// and the documentation refer to it.
	ID string `json:"id"`
	// Object is the affected object, for example "rule lifeboat-prod-rebalance".
	Object string `json:"object"`
	// Problem describes the problem and its effect on an interruption.
	Problem string `json:"problem"`
	// Fix is the command or the edit that fixes it.
	Fix string `json:"fix,omitempty"`
	// Kinds are the kinds of notices that do not arrive because of it; empty if it
	// concerns all kinds, or none in particular.
	Kinds []string `json:"kinds,omitempty"`
	// Change applies the fix in memory, so that a second check can verify it before it
	// is printed. The package that checks defines its type. It is nil for a fix that
	// cannot be applied in memory.
	Change any `json:"-"`
}

// Sort sorts by severity, the worst first, and otherwise keeps the order.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

func (s Severity) rank() int { return slices.Index(Severities(), s) }

// Has reports whether there is a finding of this severity.
func Has(all []Finding, s Severity) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Severity == s })
}
