package doctor

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkEngine compares the results of EventBridge's own pattern test with Lifeboat's. If
// they differ for a rule that should bring notices, neither verdict is certain. That is
// one finding, however many rules and events differ: they have one cause.
func checkEngine(e *diagnosis) []finding.Finding {
	var rules, differences, patterns []string
	f := finding.Finding{Severity: finding.Warning, ID: idPatternEngine}
	for _, v := range e.Verdicts {
		for _, r := range e.all {
			if r.Name != v.Rule || r.compiled == nil || !e.disagrees(r, v.Sample, v.Matches) {
				continue
			}
			if r.role != "" || r.forNotices || len(r.kinds) > 0 {
				f.Severity = finding.Unknown
			}
			rules, patterns = union(rules, []string{r.object()}), union(patterns, []string{r.Pattern})
			what := map[bool]string{true: "matches", false: "does not match"}[v.Matches]
			differences = append(differences, strings.TrimPrefix(r.object(), "rule ")+" "+what+" "+strings.ToLower(v.Sample))
		}
	}
	if len(rules) == 0 {
		return nil
	}
	const shown = 3
	more := ""
	if n := len(differences) - shown; n > 0 {
		differences, more = differences[:shown], fmt.Sprintf(", and %d more", n)
	}
	f.Object = joinList(rules)
	f.Problem = fmt.Sprintf("EventBridge and Lifeboat evaluate the patterns differently. EventBridge reports: %s%s. Lifeboat finds the opposite, so the other findings about these rules are not certain",
		strings.Join(differences, "; "), more)
	f.Fix = "test the rule with lifeboat doctor --probe, and report this as a Lifeboat bug with the pattern: " + patterns[0]
	return []finding.Finding{f}
}

// disagrees reports whether Lifeboat's result for an example differs from EventBridge's.
func (e *diagnosis) disagrees(r *rule, sample string, matches bool) bool {
	for _, c := range e.examples {
		if c.name == sample {
			return r.compiled.MatchEvent(c.event) != matches
		}
	}
	return false
}
