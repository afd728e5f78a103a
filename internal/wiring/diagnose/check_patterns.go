package diagnose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/pattern"
)

// checkPatterns holds the patterns of the queue's rules against what AWS sends.
func checkPatterns(e *exam) []finding.Finding {
	var all []finding.Finding
	for _, r := range e.rules {
		switch {
		case r.open:
		case r.err != nil:
			all = append(all, e.invalid(r))
		case len(r.lint.Matches) == 0 && r.hearsAWS:
			all = append(all, e.matchesNothing(r))
		default:
			all = append(all, e.lints(r)...)
		}
	}
	return all
}

// invalid is about a pattern that EventBridge refuses.
func (e *exam) invalid(r *rule) finding.Finding {
	f := finding.Finding{Severity: finding.Broken, ID: idRulePatternInvalid, Object: r.object(), Kinds: r.meant}
	var syntax *pattern.SyntaxError
	switch {
	case strings.TrimSpace(r.Pattern) == "":
		f.Problem = "it has no event pattern, so no notice can match it"
	case errors.As(r.err, &syntax):
		f.Problem = "EventBridge refuses its pattern: " + syntax.Reason
	default:
		f.Problem = "EventBridge refuses its pattern: " + r.err.Error()
	}
	f.Fix = e.fixPattern(r, "write a pattern in the language of the EventBridge User Guide, \"Creating event patterns\"")
	return f
}

// matchesNothing is about a pattern that no event fits.
func (e *exam) matchesNothing(r *rule) finding.Finding {
	f := finding.Finding{
		Severity: finding.Broken, ID: idRuleMatchesNothing, Object: r.object(), Kinds: r.meant,
		Problem: "no event that AWS sends can match its pattern, so the rule stays silent",
	}
	var reasons, suggestions []string
	for _, l := range r.lint.Findings {
		if l.Severity != pattern.SeverityAdvice && l.Code != "matches-nothing" {
			reasons = append(reasons, sentence(l))
			if l.Suggestion != "" {
				suggestions = append(suggestions, l.Suggestion)
			}
		}
	}
	if len(reasons) > 0 {
		f.Problem += ": " + strings.Join(reasons, "; ")
	}
	if len(suggestions) == 0 {
		suggestions = []string{"compare the pattern with the event it is for"}
	}
	f.Fix = e.fixPattern(r, strings.Join(suggestions, "; "))
	return f
}

// sentence is what the linter says, and what it suggests.
func sentence(l pattern.Finding) string {
	if l.Suggestion == "" {
		return l.Message
	}
	return l.Message + " (" + strings.TrimSuffix(l.Suggestion, "?") + ")"
}

// lints are about a pattern that matches some events, but not as it was meant to.
func (e *exam) lints(r *rule) []finding.Finding {
	var all []finding.Finding
	for _, l := range r.lint.Findings {
		f := finding.Finding{Object: r.object(), Problem: l.Message}
		switch l.Severity {
		case pattern.SeverityError:
			f.Severity, f.ID = finding.Broken, idPatternSlip
		case pattern.SeverityWarning:
			f.Severity, f.ID = finding.Warning, idPatternDoubt
		default:
			f.Severity, f.ID = finding.Info, idPatternNoise
		}
		f.Fix = e.fix(r.From, false, l.Suggestion, "")
		if l.Severity != pattern.SeverityAdvice {
			f.Problem = sentence(l)
			f.Fix = e.fixPattern(r, l.Suggestion)
		}
		all = append(all, f)
	}
	return all
}

// fixPattern is how to mend a rule's pattern: by the whole pattern as it was
// meant, where that can be told.
func (e *exam) fixPattern(r *rule, suggestion string) string {
	if r.mended == "" {
		return e.fix(r.From, r.role != "", suggestion, suggestion)
	}
	edit := "write the pattern as it was probably meant: " + r.mended
	bus := ""
	if !r.OnDefaultBus() {
		bus = " --event-bus-name " + r.Bus
	}
	return e.fix(r.From, r.role != "", edit,
		fmt.Sprintf("aws events put-rule --name %s%s --event-pattern %s", r.Name, bus, quoteShell(r.mended)))
}
