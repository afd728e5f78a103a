package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Severity is the certainty and the impact of a finding.
type Severity string

// The severities.
const (
	// SeverityError: part of the pattern can never match what AWS sends.
	SeverityError Severity = "error"
	// SeverityWarning: a part of the pattern matches nothing that Lifeboat knows of AWS; probably a mistake.
	SeverityWarning Severity = "warning"
	// SeverityAdvice: the pattern works, but has a cost.
	SeverityAdvice Severity = "advice"
)

// Finding is one problem of a pattern.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code is the stable name of the kind of finding, for example unknown-detail-type.
	Code string `json:"code"`
	// Path is the field; empty for the pattern as a whole.
	Path string `json:"path,omitempty"`
	// Message describes the problem.
	Message string `json:"message"`
	// Suggestion is the correction; empty if none can be inferred.
	Suggestion string `json:"suggestion,omitempty"`

	// wrong is a part of the pattern's text, and right its correction. Both are empty if no such replacement fixes
	// the problem. See Fix.
	wrong, right string
}

// String returns the finding in one line.
func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s", f.Severity, f.Message)
	if f.Suggestion != "" {
		s += "; " + f.Suggestion
	}
	return s
}

// Report is the result of Lint.
type Report struct {
	// Matches are the names of the samples whose kind of event the pattern can match, for any ids, accounts, regions
	// and times.
	Matches []string `json:"matches"`
	// Findings are sorted by the paths of the fields.
	Findings []Finding `json:"findings"`
}

// String returns the report for a terminal, in several lines without a final newline.
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

// Lint checks a pattern against the events that AWS is known to send. It checks whether the pattern could match an
// event of each kind, not whether it matches a particular one. Ids, ARNs, accounts and times can have any value;
// closed sets, such as instance states, only their own. A pattern that is only narrow therefore has no finding.
//
// Patterns for events of other services or custom events are checked only against the properties of all events.
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
	sent := selectedEvents(b)
	l.detailTypes(b)
	l.fields(b, sent)

	var matched []*knownEvent
	for _, k := range sent {
		if k.canMatch(b) {
			matched = append(matched, k)
			l.report.Matches = append(l.report.Matches, k.Name)
		}
	}
	l.deadTypes(b, sent, matched)
	l.noise(b, matched)
	if len(matched) == 0 && len(l.seen) == before && b.fromKnownSource() && !b.asksForOtherTypes() {
		l.add(Finding{Severity: SeverityWarning, Code: "matches-nothing",
			Message: "matches no event that AWS is known to send from " + strings.Join(b.awsSources(), ", ")})
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

// exactValues returns the exact strings that the branch accepts at a path.
func (b branch) exactValues(path string) []string {
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

// awsSources returns the sources that the branch accepts, except that of probes.
func (b branch) awsSources() []string {
	return slices.DeleteFunc(b.exactValues("source"), func(s string) bool { return s == notice.ProbeSource })
}

// fromKnownSource reports whether the branch accepts only sources whose events are in the catalogue.
func (b branch) fromKnownSource() bool {
	l := b.leaf("source")
	if l == nil {
		return false
	}
	known, accepted := knownSources(), b.awsSources()
	probes := len(b.exactValues("source")) - len(accepted)
	return len(accepted) > 0 && len(accepted)+probes == len(l.all) && !slices.ContainsFunc(accepted, func(s string) bool { return !slices.Contains(known, s) })
}

// asksForOtherTypes reports whether the branch accepts a detail-type that AWS documents but that has no sample in the
// catalogue.
func (b branch) asksForOtherTypes() bool {
	others, l := otherDetailTypes(), b.leaf("detail-type")
	for _, source := range b.awsSources() {
		for _, name := range others[source] {
			if l == nil || slices.ContainsFunc(l.tests, func(t test) bool { return t.holds(text(name)) }) {
				return true
			}
		}
	}
	return false
}

// selectedEvents returns the kinds of event that the source and the detail-type select.
func selectedEvents(b branch) []*knownEvent {
	var all []*knownEvent
	known := catalogue()
	for i := range known {
		if known[i].has(b.leaf("source"), known[i].source) && known[i].has(b.leaf("detail-type"), known[i].named) {
			all = append(all, &known[i])
		}
	}
	return all
}

// has reports whether the leaf is nil or one of its tests passes holds.
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

// canMatch reports whether an event of this kind can satisfy the branch.
func (k *knownEvent) canMatch(b branch) bool { return k.blockingLeaf(b) == nil }

// blockingLeaf returns a leaf that no event of this kind satisfies, or nil.
func (k *knownEvent) blockingLeaf(b branch) *leaf {
	for _, l := range b.leaves {
		if l.path == "source" || l.path == "detail-type" || l.absent {
			continue
		}
		if !slices.ContainsFunc(l.tests, func(t test) bool { return k.accepts(l.path, t) }) {
			return l
		}
	}
	return nil
}

// accepts reports whether the field at a path can have a value that passes the test.
func (k *knownEvent) accepts(path string, t test) bool {
	if values := k.values[path]; values != nil {
		return slices.ContainsFunc(values, func(v string) bool { return t.holds(text(v)) })
	}
	at := k.event.at(path)
	if s, ok := t.(exactString); ok && formats[path] != nil && !formats[path].MatchString(s.want) {
		return false
	}
	if start, ok := beginning(t); ok && path == "detail.instance-id" && !strings.HasPrefix(start, "i-") && !strings.HasPrefix("i-", start) {
		return false
	}
	switch {
	case within(k.open, path):
		return true
	case path == "replay-name":
		return typeFits(t, kindString)
	case len(at.values) == 0:
		return false
	case path == "resources":
		return slices.ContainsFunc(at.values, func(v *node) bool { return k.possibleResource(t, v) })
	}
	return slices.ContainsFunc(at.values, func(v *node) bool { return !wrongType(t, v) })
}

// beginning returns the text with which every match of a test begins.
func beginning(t test) (string, bool) {
	switch t := t.(type) {
	case exactString:
		return t.want, !strings.Contains(t.want, "{")
	case affix:
		return t.want, !t.suffix && !t.fold && !strings.Contains(t.want, "{")
	case wildcard:
		return t.literals[0], !strings.Contains(t.literals[0], "{")
	}
	return "", false
}

// formats are the formats of fields (EventBridge User Guide, "Events structure"). The services of AWS Health are upper
// case. A value in braces stands for one that a template does not define.
var formats = map[string]*regexp.Regexp{
	"account": regexp.MustCompile(`^([0-9]{12}|\{[^}]*\})$`),
	"region":  regexp.MustCompile(`^([a-z]+(-[a-z]+)+-[0-9]+|\{[^}]*\})$`),

	"detail.instance-id": regexp.MustCompile(`^(i-.*|.*\{[^}]*\}.*)$`),
	"detail.service":     regexp.MustCompile(`^([A-Z0-9_]+|.*\{[^}]*\}.*)$`),
}

// possibleResource reports whether a test can match a resource of the sample's form. It excludes only one case: an
// ARN with a region and an account where AWS sends an availability zone.
func (k *knownEvent) possibleResource(t test, v *node) bool {
	if wrongType(t, v) {
		return false
	}
	want, _ := beginning(t)
	// The EC2 User Guide shows rebalance recommendations with a region and an account,
	// and other sources show the form of spot interruptions. Both forms are possible.
	return k.Name == "rebalance-recommendation" || !zoneARN.MatchString(v.text) || !regionAndAccount.MatchString(want)
}
