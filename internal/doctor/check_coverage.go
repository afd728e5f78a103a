package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// checkCoverage checks for each kind of notice that some rule delivers it completely,
// and that only one does.
func checkCoverage(e *diagnosis) []finding.Finding {
	open := slices.ContainsFunc(e.rules, func(r *rule) bool { return len(r.unresolved) > 0 || e.mayTarget(r) })
	if e.QueueMissing || open || e.Incomplete || e.rulesDenied() {
		return nil // already reported
	}
	var all []finding.Finding
	var uncovered []string
	for _, kind := range kinds() {
		c := e.coverage(kind)
		if len(c.by) > 0 {
			all = append(all, e.covered(kind, c)...)
		} else if !e.alreadyReported(kind) {
			uncovered = append(uncovered, kind)
		}
	}
	for _, together := range e.groupByRule(uncovered) {
		all = append(all, e.uncovered(together))
	}
	return all
}

// kinds are the kinds of notices that EventBridge delivers.
func kinds() []string {
	var all []string
	for _, v := range variants() {
		all = union(all, []string{v.kind})
	}
	return all
}

// groupByRule groups kinds that the same Lifeboat rule would deliver.
func (e *diagnosis) groupByRule(kinds []string) [][]string {
	var groups [][]string
	for _, kind := range kinds {
		rule, _ := e.desiredRule(kind)
		i := slices.IndexFunc(groups, func(g []string) bool { return slices.Contains(rule.Kinds, g[0]) })
		if i < 0 {
			groups = append(groups, []string{kind})
		} else {
			groups[i] = append(groups[i], kind)
		}
	}
	return groups
}

// rulesDenied reports whether AWS did not list the rules or their targets. Custom buses
// are no reason: AWS services do not send to them.
func (e *diagnosis) rulesDenied() bool {
	return slices.ContainsFunc(e.Denied, func(d snapshot.Denial) bool {
		return strings.HasPrefix(d.Action, "events:List") && d.Action != "events:ListEventBuses"
	})
}

// coverage holds the rules that deliver the examples of one kind.
type coverage struct {
	missing  []string            // examples that no rule delivers
	by       map[string][]string // example → rules
	narrowed []string            // additional fields that the rules' patterns require
	singular bool                // each rule requires a value that only a few events have
	complete bool                // some rule delivers every event of the kind
}

func (e *diagnosis) coverage(kind string) coverage {
	c := coverage{by: map[string][]string{}, singular: true}
	for _, example := range e.examples {
		if example.kind != kind {
			continue
		}
		for _, r := range e.rules {
			if !r.receivesEvents(e.Region) || !e.targetsQueue(r) || !matchesSample(r, example) {
				continue
			}
			c.by[example.name] = append(c.by[example.name], r.Title())
			if asked := e.narrowingFields(r, example); len(asked) == 0 {
				c.complete = true
			} else {
				c.narrowed = union(c.narrowed, asked)
				c.singular = c.singular && slices.ContainsFunc(asked, r.isSingular)
			}
		}
		if len(c.by[example.name]) == 0 {
			c.missing = append(c.missing, example.name)
		}
	}
	return c
}

// narrowingFields returns the fields for which a rule's pattern requires a particular
// value. In a template that can be an account or a region that is unknown here.
func (e *diagnosis) narrowingFields(r *rule, example sampleEvent) []string {
	key := example.kind + " " + example.name
	if known, ok := r.narrowing[key]; ok {
		return known
	}
	var paths []string
	mismatches := append(r.compiled.ExplainEvent(example.event).Mismatches, r.compiled.ExplainEvent(example.other).Mismatches...)
	for _, m := range mismatches {
		if m.Path == "account" && e.Account == "" || m.Path == "region" && e.Region == "" {
			continue // checkPlaces reports it
		}
		paths = union(paths, []string{m.Path})
	}
	if r.narrowing != nil {
		r.narrowing[key] = paths
	}
	return paths
}

func matchesSample(r *rule, c sampleEvent) bool {
	return slices.ContainsFunc(r.matched, func(m sampleEvent) bool { return m.name == c.name && m.kind == c.kind })
}

// covered returns findings about a kind that some rule delivers.
func (e *diagnosis) covered(kind string, c coverage) []finding.Finding {
	f := finding.Finding{Object: "kind " + kind, Kinds: []string{kind}, Severity: finding.Warning}
	switch {
	case len(c.missing) > 0:
		f.ID = idKindPartlyCovered
		f.Problem = "no rule delivers " + joinList(c.missing)
		if slices.Contains(c.missing, defaultInterruption) {
			f.Severity = finding.Broken
			f.Problem += ": terminate is the default action, so most notices are lost"
		}
		f.Fix, f.Change = e.fixCoverage(kind), e.addRule(kind)
	case !c.complete && !isGroupScoped(kind):
		f.ID = idKindPartlyCovered
		f.Problem = "the rules deliver it only for some events: their patterns require a particular " + joinList(c.narrowed)
		if kind == notice.KindSpotInterruption && c.singular {
			f.Severity = finding.Broken
			f.Problem += ", so that nearly all of them are lost"
		}
		f.Fix, f.Change = e.fixCoverage(kind), e.addRule(kind)
	default:
		return coveredTwice(kind, c)
	}
	return []finding.Finding{f}
}

// defaultInterruption is the example of a spot interruption with the default action
// (EC2 User Guide, "Spot Instance interruption notices").
const defaultInterruption = "spot-interruption-warning (terminate)"

// isSingular reports whether the pattern requires a value of a field that only a few
// events have.
func (r *rule) isSingular(path string) bool {
	if path != "resources" {
		return isID(path)
	}
	return slices.Contains(r.compiled.PathsWith(func(value string) bool { return strings.HasPrefix(value, `"`) }), path)
}

// isGroupScoped reports whether rules for a kind are usually limited to Auto Scaling
// groups.
func isGroupScoped(kind string) bool {
	return kind == notice.KindAutoScalingTermination || kind == notice.KindLifecycleActionFailure
}

// alreadyReported reports whether an earlier finding explains why a kind does not
// arrive: a rule for it has an error.
func (e *diagnosis) alreadyReported(kind string) bool {
	return slices.ContainsFunc(e.found, func(f finding.Finding) bool { return slices.Contains(f.Kinds, kind) })
}

// uncovered returns a finding about kinds that no rule delivers.
func (e *diagnosis) uncovered(kinds []string) finding.Finding {
	f := finding.Finding{
		Severity: severityOf(kinds), ID: idKindUncovered, Object: "kind " + joinList(kinds), Kinds: kinds,
		Problem: "no rule delivers such notices to the queue",
		Fix:     e.fixCoverage(kinds[0]),
		Change:  e.addRule(kinds[0]),
	}
	if rule, ok := e.desiredRule(kinds[0]); ok && rule.Optional() {
		f.Severity = finding.Info
		f.Problem += fmt.Sprintf(" (it needs %s)", rule.Needs)
	}
	if others := e.rulesWithOtherTargets(kinds); len(others) > 0 {
		f.Problem += "; " + joinList(others) + " would match them, but has another target"
	}
	return f
}

// rulesWithOtherTargets returns rules that match one of the kinds, but whose target
// is not this queue.
func (e *diagnosis) rulesWithOtherTargets(kinds []string) []string {
	var names []string
	for _, r := range e.all {
		if r.receivesEvents(e.Region) && !e.targetsQueue(r) && slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(r.kinds, kind) }) {
			names = append(names, r.Title())
		}
	}
	return names
}

// desiredRule returns the rule that Lifeboat would create for a kind.
func (e *diagnosis) desiredRule(kind string) (awssetup.Rule, bool) {
	i := slices.IndexFunc(e.desired.Rules, func(r awssetup.Rule) bool { return slices.Contains(r.Kinds, kind) })
	if i < 0 {
		return awssetup.Rule{}, false
	}
	return e.desired.Rules[i], true
}

// fixCoverage returns the fix for a kind that does not arrive.
func (e *diagnosis) fixCoverage(kind string) string {
	r, ok := e.desiredRule(kind)
	if !ok || !e.Offline {
		return e.applyCommand()
	}
	if field := e.kOpsField(kind); field != "" {
		return field
	}
	return "add a rule with the pattern " + r.Pattern + e.overwritten(e.queue.From)
}

// coveredTwice reports several rules that deliver the same notices.
func coveredTwice(kind string, c coverage) []finding.Finding {
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
		Problem: fmt.Sprintf("%s all deliver it: each rule sends its own message, which costs money but is harmless", joinList(rules)),
		Fix:     "keep one of them",
	}}
}
