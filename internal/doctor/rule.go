package doctor

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// rule is a rule with the analysis of its pattern.
type rule struct {
	snapshot.Rule

	// role is the role of Lifeboat's rule with this name; empty if there is none.
	role     string
	compiled *pattern.Pattern
	err      error // of compiling
	lint     pattern.Report
	// matched are the examples that the pattern could match, and kinds their kinds.
	matched []sampleEvent
	kinds   []string
	// fixedPattern is the corrected pattern; empty if nothing needs a fix, or none
	// can be inferred. intendedKinds are the kinds that it would match.
	fixedPattern  string
	intendedKinds []string
	// unresolved are the values of the pattern that the template does not define and
	// that decide which events it matches.
	unresolved []string
	// narrowing are the results of narrowingFields by example.
	narrowing map[string][]string
	// forNotices means that the rule matches, or should match, events of the services
	// that send notices.
	forNotices bool
}

// analyzer analyzes the rules of a wiring. It analyzes each pattern once, although the
// verification of the fixes checks many copies of the wiring.
type analyzer struct {
	examples []sampleEvent
	patterns map[string]patternAnalysis
}

// patternAnalysis is the part of the analysis of a rule that depends only on its
// pattern.
type patternAnalysis struct {
	compiled     *pattern.Pattern
	err          error
	lint         pattern.Report
	matched      []sampleEvent
	kinds        []string
	fixedPattern string
	fixedKinds   []string
	unresolved   []string
	narrowing    map[string][]string // by example; see narrowingFields
}

func newAnalyzer(s snapshot.Snapshot) *analyzer {
	return &analyzer{sampleEvents(s.Account, s.Region), map[string]patternAnalysis{}}
}

func (a *analyzer) rules(s snapshot.Snapshot, want awssetup.Wiring) []*rule {
	var all []*rule
	for _, r := range s.Rules {
		all = append(all, a.rule(s.ThroughTopics(r), want))
	}
	return all
}

func (a *analyzer) rule(from snapshot.Rule, want awssetup.Wiring) *rule {
	r := &rule{Rule: from}
	expected := awssetup.Rule{}
	if i := slices.IndexFunc(want.Rules, func(w awssetup.Rule) bool { return w.Name == r.Name }); i >= 0 && want.Cluster != "" {
		expected = want.Rules[i]
		r.role = expected.Role
	}
	if r.Scheduled {
		return r
	}
	p := a.pattern(r.Pattern)
	if r.unresolved = p.unresolved; len(r.unresolved) > 0 {
		r.forNotices = true
		return r
	}
	r.compiled, r.err, r.lint, r.matched, r.kinds, r.fixedPattern = p.compiled, p.err, p.lint, p.matched, p.kinds, p.fixedPattern
	r.intendedKinds, r.narrowing = p.fixedKinds, p.narrowing
	if r.role != "" {
		r.intendedKinds = union(r.intendedKinds, expected.Kinds)
	}
	r.intendedKinds = union(r.intendedKinds, r.kinds)
	r.forNotices = r.role != "" || len(r.kinds) > 0 || len(r.intendedKinds) > 0 || mentionsAWS(r.Pattern)
	return r
}

func (a *analyzer) pattern(text string) patternAnalysis {
	if known, ok := a.patterns[text]; ok {
		return known
	}
	p := patternAnalysis{narrowing: map[string][]string{}}
	if p.unresolved = undefinedParts(text); len(p.unresolved) == 0 {
		p.compiled, p.err = pattern.Compile([]byte(text))
		if p.err == nil {
			p.lint = pattern.Lint(p.compiled)
			for _, c := range a.examples {
				if p.compiled.CouldMatch(c.event, c.fixed...) {
					p.matched = append(p.matched, c)
				}
			}
			p.kinds = kindsOf(p.compiled, a.examples)
		}
		if fixed, ok := pattern.Fix(text); ok {
			if compiled, err := pattern.Compile([]byte(fixed)); err == nil {
				p.fixedPattern, p.fixedKinds = fixed, kindsOf(compiled, a.examples)
			}
		}
	}
	a.patterns[text] = p
	return p
}

// undefinedParts returns the values of a pattern that the template does not define,
// unless each of them is the name of an Auto Scaling group: a rule for certain groups
// is checked like any other.
func undefinedParts(text string) []string {
	names := symbol.Undefined(text)
	if len(names) == 0 {
		return nil
	}
	p, err := pattern.Compile([]byte(text))
	if err != nil {
		return names
	}
	for _, path := range p.PathsWith(symbol.Within) {
		if path != "detail.AutoScalingGroupName" && path != "account" && path != "region" {
			return names
		}
	}
	return nil
}

// mentionsAWS reports whether a pattern contains a service that sends notices. It is
// for patterns that do not compile or match nothing.
func mentionsAWS(text string) bool {
	for _, source := range noticeSources() {
		if strings.Contains(strings.ToLower(text), `"`+source+`"`) {
			return true
		}
	}
	return false
}

// noticeSources are the services that send notices, and AWS FIS, which sends events
// about drills.
func noticeSources() []string { return []string{"aws.ec2", "aws.health", "aws.autoscaling", "aws.fis"} }

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// object returns the rule's name for findings.
func (r *rule) object() string {
	if r.OnDefaultBus() {
		return "rule " + r.Title()
	}
	return "rule " + r.Title() + " on bus " + snapshot.BusName(r.Bus)
}

// receivesEvents reports whether AWS events reach the rule.
func (r *rule) receivesEvents(region string) bool {
	return r.Enabled && r.OnDefaultBus() && !r.inOtherRegion(region)
}

// inOtherRegion reports whether the rule is in another region than the cluster.
func (r *rule) inOtherRegion(region string) bool {
	at := snapshot.Part(r.ARN, 3)
	return region != "" && at != "" && symbol.Equal(at, region) == symbol.No
}
