package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// checkCoverage asks of each kind of notice whether some rule brings it, wholly,
// and only once.
func checkCoverage(e *exam) []finding.Finding {
	open := slices.ContainsFunc(e.rules, func(r *rule) bool { return r.open })
	if e.QueueMissing || open || e.rulesUnseen() {
		return nil // said already, and nothing more can be said
	}
	var all []finding.Finding
	var uncovered []string
	for _, kind := range kinds() {
		c := e.coverage(kind)
		if len(c.by) > 0 {
			all = append(all, e.covered(kind, c)...)
		} else if !e.explained(kind) {
			uncovered = append(uncovered, kind)
		}
	}
	for _, together := range e.byWantedRule(uncovered) {
		all = append(all, e.uncovered(together))
	}
	return all
}

// kinds are the kinds of notices that come through EventBridge.
func kinds() []string {
	var all []string
	for _, v := range variants() {
		all = union(all, []string{v.kind})
	}
	return all
}

// byWantedRule puts kinds together that one rule of Lifeboat's would bring.
func (e *exam) byWantedRule(kinds []string) [][]string {
	var groups [][]string
	for _, kind := range kinds {
		rule, _ := e.wantedFor(kind)
		i := slices.IndexFunc(groups, func(g []string) bool { return slices.Contains(rule.Kinds, g[0]) })
		if i < 0 {
			groups = append(groups, []string{kind})
		} else {
			groups[i] = append(groups[i], kind)
		}
	}
	return groups
}

// rulesUnseen tells whether rules could not be looked at.
func (e *exam) rulesUnseen() bool {
	return slices.ContainsFunc(e.Denied, func(d snapshot.Denial) bool { return strings.HasPrefix(d.Action, "events:List") })
}

// coverage is which rules bring the examples of one kind.
type coverage struct {
	missing  []string            // examples that no rule brings
	by       map[string][]string // example → rules
	narrowed []string            // what rules ask besides, where none brings all
	whole    bool                // some rule brings every event of the kind
}

func (e *exam) coverage(kind string) coverage {
	c := coverage{by: map[string][]string{}}
	for _, example := range e.examples {
		if example.kind != kind {
			continue
		}
		for _, r := range e.rules {
			if !r.hears(e.Region) || !e.feeds(r) || !brings(r, example) {
				continue
			}
			c.by[example.name] = append(c.by[example.name], r.Name)
			if asked := e.asked(r, example); len(asked) == 0 {
				c.whole = true
			} else {
				c.narrowed = union(c.narrowed, asked)
			}
		}
		if len(c.by[example.name]) == 0 {
			c.missing = append(c.missing, example.name)
		}
	}
	return c
}

// asked are the fields of which a rule's pattern wants a particular value. In a
// template that may be an account or a region that is not known here.
func (e *exam) asked(r *rule, example canonical) []string {
	var paths []string
	for _, m := range r.compiled.ExplainEvent(example.event).Mismatches {
		if place := m.Path == "account" || m.Path == "region"; !place || e.Account != "" {
			paths = append(paths, m.Path)
		}
	}
	return paths
}

func brings(r *rule, c canonical) bool {
	return slices.ContainsFunc(r.matched, func(m canonical) bool { return m.name == c.name && m.kind == c.kind })
}

// covered are the findings about a kind that some rule brings.
func (e *exam) covered(kind string, c coverage) []finding.Finding {
	f := finding.Finding{Object: "kind " + kind, Kinds: []string{kind}, Severity: finding.Warning}
	switch {
	case len(c.missing) > 0:
		f.ID = idKindPartlyCovered
		f.Problem = "no rule brings " + list(c.missing)
		f.Fix = e.wantedRule(kind)
	case !c.whole && !groupsOnly(kind):
		f.ID = idKindPartlyCovered
		f.Problem = "rules bring it for some instances only: their patterns ask for a particular " + list(c.narrowed)
		f.Fix = e.wantedRule(kind)
	default:
		return twice(kind, c)
	}
	return []finding.Finding{f}
}

// groupsOnly tells whether it is usual to listen to particular Auto Scaling
// groups.
func groupsOnly(kind string) bool {
	return kind == notice.KindAutoScalingTermination || kind == notice.KindLifecycleActionFailure
}

// explained tells whether it was found already why a kind is not heard: a rule
// that should bring it was found wanting.
func (e *exam) explained(kind string) bool {
	return slices.ContainsFunc(e.found, func(f finding.Finding) bool { return slices.Contains(f.Kinds, kind) })
}

// uncovered is about kinds that no rule brings.
func (e *exam) uncovered(kinds []string) finding.Finding {
	f := finding.Finding{
		Severity: severityOf(kinds), ID: idKindUncovered, Object: "kind " + list(kinds), Kinds: kinds,
		Problem: "no rule brings such notices to the queue",
		Fix:     e.wantedRule(kinds[0]),
	}
	if rule, ok := e.wantedFor(kinds[0]); ok && rule.Optional() {
		f.Severity = finding.Info
		f.Problem += fmt.Sprintf(" (it needs %s)", rule.Needs)
	}
	if others := e.heardElsewhere(kinds); len(others) > 0 {
		f.Problem += "; " + list(others) + " would match them, but sends them elsewhere"
	}
	return f
}

// heardElsewhere are rules that bring one of the kinds, but not to this queue.
func (e *exam) heardElsewhere(kinds []string) []string {
	var names []string
	for _, r := range e.all {
		if r.hears(e.Region) && !e.feeds(r) && slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(r.kinds, kind) }) {
			names = append(names, r.Name)
		}
	}
	return names
}

// wantedFor is the rule that Lifeboat would make for a kind.
func (e *exam) wantedFor(kind string) (wiring.Rule, bool) {
	i := slices.IndexFunc(e.want.Rules, func(r wiring.Rule) bool { return slices.Contains(r.Kinds, kind) })
	if i < 0 {
		return wiring.Rule{}, false
	}
	return e.want.Rules[i], true
}

// wantedRule is how to have a kind heard.
func (e *exam) wantedRule(kind string) string {
	r, ok := e.wantedFor(kind)
	if !ok || !e.Offline {
		return e.apply()
	}
	return "add a rule with the pattern " + r.Pattern
}

// twice is about several rules that bring the same.
func twice(kind string, c coverage) []finding.Finding {
	var rules []string
	for _, example := range slices.Sorted(maps.Keys(c.by)) {
		if len(c.by[example]) > 1 {
			rules = union(rules, c.by[example])
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return []finding.Finding{{
		Severity: finding.Info, ID: idKindCoveredTwice, Object: "kind " + kind,
		Problem: fmt.Sprintf("%s all bring it: each notice is a message from each, which costs and does no harm", list(rules)),
		Fix:     "keep one of them",
	}}
}
