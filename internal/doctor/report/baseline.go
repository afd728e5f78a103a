package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// Baseline lists accepted findings.
type Baseline struct {
	Accepted []Accepted `json:"accepted"`
}

// Accepted is a finding that a user accepts. Its text is not part of it: the text of a
// version can differ from that of the next.
type Accepted struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	// Reason is a note of the user.
	Reason string `json:"reason,omitempty"`
}

// ReadBaseline decodes a baseline.
func ReadBaseline(data []byte) (Baseline, error) {
	var b Baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("it is not a baseline, which --write-baseline writes: %w", err)
	}
	return b, nil
}

// With returns a baseline that accepts all findings, and keeps the reasons of b.
func (b Baseline) With(all []finding.Finding) Baseline {
	out := Baseline{Accepted: []Accepted{}}
	for _, f := range all {
		a := Accepted{ID: f.ID, Object: f.Object}
		if i := b.index(f); i >= 0 {
			a = b.Accepted[i]
		}
		if !slices.Contains(out.Accepted, a) {
			out.Accepted = append(out.Accepted, a)
		}
	}
	return out
}

func (b Baseline) index(f finding.Finding) int {
	return slices.IndexFunc(b.Accepted, func(a Accepted) bool { return a.ID == f.ID && a.Object == f.Object })
}

// Filter returns the findings that are not accepted, how many are, and the entries that
// match no finding.
func (b Baseline) Filter(all []finding.Finding) (left []finding.Finding, accepted int, stale []Accepted) {
	used := make([]bool, len(b.Accepted))
	for _, f := range all {
		i := b.index(f)
		if i < 0 {
			left = append(left, f)
			continue
		}
		used[i] = true
		accepted++
	}
	for i, a := range b.Accepted {
		if !used[i] {
			stale = append(stale, a)
		}
	}
	return left, accepted, stale
}
