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
	// forNotices means that the rule matches, or should match, events of the services
	// that send notices.
	forNotices bool
}

func analyzeRules(s snapshot.Snapshot, want awssetup.Wiring, examples []sampleEvent) []*rule {
	var all []*rule
	for _, r := range s.Rules {
		all = append(all, analyzeRule(r, want, examples))
	}
	return all
}

func analyzeRule(from snapshot.Rule, want awssetup.Wiring, examples []sampleEvent) *rule { //nolint:gocyclo // one case for each problem of a rule
	r := &rule{Rule: from}
	expected := awssetup.Rule{}
	if i := slices.IndexFunc(want.Rules, func(w awssetup.Rule) bool { return w.Name == r.Name }); i >= 0 && want.Cluster != "" {
		expected = want.Rules[i]
		r.role = expected.Role
	}
	if r.Scheduled {
		return r
	}
	if r.unresolved = undefinedParts(r.Pattern); len(r.unresolved) > 0 {
		r.forNotices = true
		return r
	}
	r.compiled, r.err = pattern.Compile([]byte(r.Pattern))
	if r.err == nil {
		r.lint = pattern.Lint(r.compiled)
		for _, c := range examples {
			if r.compiled.CouldMatch(c.event, c.fixed...) {
				r.matched = append(r.matched, c)
			}
		}
		r.kinds = kindsOf(r.compiled, examples)
	}
	if text, ok := pattern.Fix(r.Pattern); ok {
		if p, err := pattern.Compile([]byte(text)); err == nil {
			r.fixedPattern, r.intendedKinds = text, kindsOf(p, examples)
		}
	}
	if r.role != "" {
		r.intendedKinds = union(r.intendedKinds, expected.Kinds)
	}
	r.intendedKinds = union(r.intendedKinds, r.kinds)
	r.forNotices = r.role != "" || len(r.kinds) > 0 || len(r.intendedKinds) > 0 || mentionsAWS(r.Pattern)
	return r
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
