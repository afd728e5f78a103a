package pattern

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Severity is how sure and how bad a finding is.
type Severity string

// The severities.
const (
	// SeverityError: part of the pattern can never match what AWS sends.
	SeverityError Severity = "error"
	// SeverityWarning: nothing that Lifeboat knows of AWS fits; probably a mistake.
	SeverityWarning Severity = "warning"
	// SeverityAdvice: it works, at a price.
	SeverityAdvice Severity = "advice"
)

// Finding is one thing wrong with a pattern.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code is a stable name of the kind of finding, such as unknown-detail-type.
	Code string `json:"code"`
	// Path is the field concerned; empty for the pattern as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Suggestion is what to write instead; empty when there is no telling.
	Suggestion string `json:"suggestion,omitempty"`

	// wrong is a piece of the pattern's text, and right what it should be; empty
	// where no such exchange mends it. See Mend.
	wrong, right string
}

// String is the finding in one line.
func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s", f.Severity, f.Message)
	if f.Suggestion != "" {
		s += "; " + f.Suggestion
	}
	return s
}

// Report is what Lint says of a pattern.
type Report struct {
	// Matches are the names of the samples whose kind of event the pattern can match, whatever the ids, accounts,
	// regions and times in it.
	Matches []string `json:"matches"`
	// Findings are in the order of the fields' paths.
	Findings []Finding `json:"findings"`
}

// String is the report for a terminal, several lines without a final newline.
func (r Report) String() string {
	var b strings.Builder
	b.WriteString("can match: ")
	if len(r.Matches) == 0 {
		b.WriteString("no AWS event known here")
	}
	b.WriteString(strings.Join(r.Matches, ", "))
	for _, f := range r.Findings {
		b.WriteString("\n" + f.String())
	}
	return b.String()
}

// Lint holds a pattern against the events that AWS is known to send. It asks whether the pattern could match an event
// of each kind, not whether it matches a particular one: ids, ARNs, accounts and times may have any value; closed sets,
// such as the states of an instance, only theirs. So a pattern that merely narrows is never accused.
//
// Patterns for other services' or one's own events are only held to what is true of every event.
func Lint(p *Pattern) Report {
	l := linter{seen: map[Finding]bool{}, report: Report{Matches: []string{}, Findings: []Finding{}}}
	for _, b := range p.branches {
		l.branch(b)
	}
	slices.Sort(l.report.Matches)
	l.report.Matches = slices.Compact(l.report.Matches)
	slices.SortStableFunc(l.report.Findings, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	return l.report
}

type linter struct {
	report Report
	seen   map[Finding]bool
}

func (l *linter) add(f Finding) {
	if !l.seen[f] {
		l.seen[f] = true
		l.report.Findings = append(l.report.Findings, f)
	}
}

// branch checks one combination of a pattern's choices.
func (l *linter) branch(b branch) {
	before := len(l.seen)
	l.envelope(b)
	l.sources(b)
	sent := meant(b)
	l.detailTypes(b)
	l.fields(b, sent)

	var matched []*knownEvent
	for _, k := range sent {
		if k.could(b) {
			matched = append(matched, k)
			l.report.Matches = append(l.report.Matches, k.Name)
		}
	}
	l.deadTypes(b, sent, matched)
	l.noise(b, matched)
	if len(matched) == 0 && len(l.seen) == before && b.fromKnownSource() && !b.asksForOtherTypes() {
		l.add(Finding{Severity: SeverityWarning, Code: "matches-nothing",
			Message: "matches no event that AWS is known to send from " + strings.Join(b.senders(), ", ")})
	}
}

// leaf returns the leaf at a path, or nil.
func (b branch) leaf(path string) *leaf {
	for _, l := range b.leaves {
		if l.path == path {
			return l
		}
	}
	return nil
}

// exactly lists the exact strings that the branch wants at a path.
func (b branch) exactly(path string) []string {
	var all []string
	if l := b.leaf(path); l != nil {
		for _, t := range l.tests {
			if s, ok := t.(exactString); ok {
				all = append(all, s.want)
			}
		}
	}
	return all
}

// senders lists the sources that the branch wants, without that of probes.
func (b branch) senders() []string {
	return slices.DeleteFunc(b.exactly("source"), func(s string) bool { return s == notice.ProbeSource })
}

// fromKnownSource says whether the branch wants only sources whose events are in the catalogue.
func (b branch) fromKnownSource() bool {
	l := b.leaf("source")
	if l == nil {
		return false
	}
	known, wanted := knownSources(), b.senders()
	probes := len(b.exactly("source")) - len(wanted)
	return len(wanted) > 0 && len(wanted)+probes == len(l.all) && !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(known, s) })
}

// asksForOtherTypes says whether the branch takes a detail-type that AWS documents but the catalogue has no sample of.
func (b branch) asksForOtherTypes() bool {
	others, l := otherDetailTypes(), b.leaf("detail-type")
	for _, source := range b.senders() {
		for _, name := range others[source] {
			if l == nil || slices.ContainsFunc(l.tests, func(t test) bool { return t.holds(text(name)) }) {
				return true
			}
		}
	}
	return false
}

// meant are the kinds of event that the source and the detail-type select.
func meant(b branch) []*knownEvent {
	var all []*knownEvent
	known := catalogue()
	for i := range known {
		if known[i].has(b.leaf("source"), known[i].source) && known[i].has(b.leaf("detail-type"), known[i].named) {
			all = append(all, &known[i])
		}
	}
	return all
}

// has says whether a leaf, if there is one, holds by some test.
func (k *knownEvent) has(l *leaf, holds func(test) bool) bool {
	return l == nil || slices.ContainsFunc(l.tests, holds)
}

func (k *knownEvent) source(t test) bool {
	if k.anySource {
		s, exact := t.(exactString)
		return !exact || strings.HasPrefix(s.want, "aws.")
	}
	return t.holds(text(k.Source))
}

func (k *knownEvent) named(t test) bool {
	return slices.ContainsFunc(k.detailTypes, func(name string) bool { return t.holds(text(name)) })
}

func text(s string) *node { return &node{kind: kindString, text: s} }

// could says whether some event of this kind satisfies the branch.
func (k *knownEvent) could(b branch) bool { return k.obstacle(b) == nil }

// obstacle is a leaf that no event of this kind satisfies, or nil.
func (k *knownEvent) obstacle(b branch) *leaf {
	for _, l := range b.leaves {
		if l.path == "source" || l.path == "detail-type" || l.absent {
			continue
		}
		if !slices.ContainsFunc(l.tests, func(t test) bool { return k.takes(l.path, t) }) {
			return l
		}
	}
	return nil
}

// takes says whether the field at a path can have a value for which the test holds.
func (k *knownEvent) takes(path string, t test) bool {
	if values := k.values[path]; values != nil {
		return slices.ContainsFunc(values, func(v string) bool { return t.holds(text(v)) })
	}
	at := k.event.at(path)
	switch {
	case within(k.open, path):
		return true
	case path == "replay-name":
		return typeFits(t, kindString)
	case len(at.values) == 0:
		return false
	case path == "resources":
		return slices.ContainsFunc(at.values, func(v *node) bool { return possibleResource(t, v) })
	}
	return slices.ContainsFunc(at.values, func(v *node) bool { return !wrongType(t, v) })
}

// possibleResource says whether a test can hold of a resource built like the sample's. Only one thing is ruled out: an
// ARN that goes on with a region and an account where AWS sends an availability zone.
func possibleResource(t test, v *node) bool {
	if wrongType(t, v) {
		return false
	}
	want := ""
	switch t := t.(type) {
	case exactString:
		want = t.want
	case affix:
		if !t.suffix && !t.fold {
			want = t.want
		}
	case wildcard:
		want = t.literals[0]
	}
	return !zoneARN.MatchString(v.text) || !regionAndAccount.MatchString(want)
}
