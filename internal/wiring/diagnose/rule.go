package diagnose

import (
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// rule is a rule with what its pattern comes to.
type rule struct {
	snapshot.Rule

	// role is what Lifeboat has a rule of this name for; empty if it has none.
	role     string
	compiled *pattern.Pattern
	err      error // of compiling
	lint     pattern.Report
	// matched are the examples that the pattern could match, kinds their kinds.
	matched []canonical
	kinds   []string
	// mended is the pattern as it was probably meant; empty where there is no
	// telling, or nothing to mend. meant are the kinds that it then brings.
	mended string
	meant  []string
	// open: the template leaves parts of its pattern open, so it is not judged.
	open bool
	// hearsAWS: it is, or was meant to be, about the services that send notices.
	hearsAWS bool
}

func examine(s snapshot.Snapshot, want wiring.Wiring, examples []canonical) []*rule {
	var all []*rule
	for _, r := range s.Rules {
		all = append(all, examineRule(r, want, examples))
	}
	return all
}

func examineRule(from snapshot.Rule, want wiring.Wiring, examples []canonical) *rule {
	r := &rule{Rule: from}
	expected := wiring.Rule{}
	if i := slices.IndexFunc(want.Rules, func(w wiring.Rule) bool { return w.Name == r.Name }); i >= 0 && want.Cluster != "" {
		expected = want.Rules[i]
		r.role = expected.Role
	}
	if r.open = strings.Contains(r.Pattern, snapshot.Open); r.open {
		r.hearsAWS = true
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
	if text, ok := pattern.Mend(r.Pattern); ok {
		if p, err := pattern.Compile([]byte(text)); err == nil {
			r.mended, r.meant = text, kindsOf(p, examples)
		}
	}
	if r.role != "" {
		r.meant = union(r.meant, expected.Kinds)
	}
	r.meant = union(r.meant, r.kinds)
	r.hearsAWS = r.role != "" || len(r.kinds) > 0 || len(r.meant) > 0 || mentionsAWS(r.Pattern)
	return r
}

// mentionsAWS tells whether a pattern names, in whatever way, a service that
// sends notices: it is for patterns that do not compile, or match nothing.
func mentionsAWS(text string) bool {
	for _, source := range noticeSources() {
		if strings.Contains(strings.ToLower(text), `"`+source+`"`) {
			return true
		}
	}
	return false
}

// noticeSources are the services that send notices, and the one that tells of
// drills.
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

// object names the rule in findings.
func (r *rule) object() string {
	if r.OnDefaultBus() {
		return "rule " + r.Name
	}
	return "rule " + r.Name + " on bus " + snapshot.BusName(r.Bus)
}

// hears tells whether AWS's events reach the rule at all.
func (r *rule) hears(region string) bool {
	return r.Enabled && r.OnDefaultBus() && !r.elsewhere(region)
}

// elsewhere tells whether the rule is in another region than the cluster.
func (r *rule) elsewhere(region string) bool {
	at := snapshot.Part(r.ARN, 3)
	return region != "" && at != "" && !strings.HasPrefix(at, "{") && at != region
}
