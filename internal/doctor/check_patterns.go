package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkPatterns tests the patterns of the queue's rules against the events that AWS
// sends.
func checkPatterns(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, r := range e.rules {
		switch {
		case r.Scheduled:
		case len(r.unresolved) > 0:
			all = append(all, notUnderstood(r.From, "its pattern depends on values that the template does not define: "+joinList(r.unresolved), symbol.Supply(r.Pattern)))
		case r.err != nil:
			all = append(all, e.invalid(r))
		case len(r.lint.Matches) == 0 && r.forNotices:
			all = append(all, e.matchesNothing(r))
		default:
			all = append(all, e.lints(r)...)
			all = append(all, e.checkPlaces(r)...)
		}
	}
	return all
}

// checkPlaces reports a pattern that names an account or a region, if those of the
// files are not known.
func (e *diagnosis) checkPlaces(r *rule) []finding.Finding {
	written := r.compiled.PathsWith(func(value string) bool { return !symbol.Within(value) })
	open := ""
	if e.Account == "" && slices.Contains(written, "account") {
		open += symbol.Account
	}
	if e.Region == "" && slices.Contains(written, "region") {
		open += symbol.Region
	}
	if open == "" || !r.forNotices {
		return nil
	}
	return []finding.Finding{notUnderstood(r.object(), "its pattern names an account or a region, and the files do not say whether it is theirs", symbol.Supply(open))}
}

// invalid reports a pattern that EventBridge refuses.
func (e *diagnosis) invalid(r *rule) finding.Finding {
	f := finding.Finding{Severity: finding.Broken, ID: idRulePatternInvalid, Object: r.object(), Kinds: r.intendedKinds}
	var syntax *pattern.SyntaxError
	switch {
	case strings.TrimSpace(r.Pattern) == "":
		f.Problem = "it has no event pattern, so it matches no notice"
	case errors.As(r.err, &syntax):
		f.Problem = "EventBridge refuses its pattern: " + syntax.Reason
	default:
		f.Problem = "EventBridge refuses its pattern: " + r.err.Error()
	}
	f.Fix = e.fixPattern(r, "write a valid pattern (EventBridge User Guide, \"Creating event patterns\")")
	f.Change = e.usePattern(r, r.fixedPattern)
	return f
}

// matchesNothing reports a pattern that no AWS event matches.
func (e *diagnosis) matchesNothing(r *rule) finding.Finding {
	f := finding.Finding{
		Severity: finding.Broken, ID: idRuleMatchesNothing, Object: r.object(), Kinds: r.intendedKinds,
		Problem: "no AWS event can match its pattern, so the rule sends nothing",
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
		suggestions = []string{"compare the pattern with the event that it should match"}
	}
	f.Fix = e.fixPattern(r, strings.Join(suggestions, "; "))
	f.Change = e.usePattern(r, r.fixedPattern)
	return f
}

// sentence returns the message of a lint finding, with its suggestion.
func sentence(l pattern.Finding) string {
	if l.Suggestion == "" {
		return l.Message
	}
	return l.Message + " (" + strings.TrimSuffix(l.Suggestion, "?") + ")"
}

// lints reports a pattern that matches some events, but not all intended ones.
func (e *diagnosis) lints(r *rule) []finding.Finding {
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
		if quiet, ok := pattern.Quiet(r.Pattern); ok && l.Severity == pattern.SeverityAdvice {
			f.Fix, f.Change = e.usePatternText(r, quiet), e.usePattern(r, quiet)
		}
		if l.Severity != pattern.SeverityAdvice {
			f.Problem = sentence(l)
			f.Fix, f.Change = e.fixPattern(r, cmp.Or(l.Suggestion, "compare "+cmp.Or(l.Path, "the pattern")+" with an event that the rule should match")), e.usePattern(r, r.fixedPattern)
		}
		all = append(all, f)
	}
	return all
}

// usePattern replaces a rule's pattern by a corrected one. For a rule of Lifeboat, the
// fix is lifeboat aws setup, which writes all of Lifeboat's rules.
func (e *diagnosis) usePattern(r *rule, text string) change {
	if r.From == "" && r.role != "" {
		return e.setupRules()
	}
	if text == "" {
		return nil
	}
	return onRule(r, func(o *snapshot.Rule) { o.Pattern = text })
}

// fixPattern returns the fix for a rule's pattern: the complete corrected pattern if
// it can be inferred.
func (e *diagnosis) fixPattern(r *rule, suggestion string) string {
	if r.fixedPattern == "" {
		return e.fix(r.From, r.role != "", suggestion, suggestion)
	}
	return e.usePatternText(r, r.fixedPattern)
}

// usePatternText returns the fix that replaces the pattern of a rule.
func (e *diagnosis) usePatternText(r *rule, text string) string {
	bus := ""
	if !r.OnDefaultBus() {
		bus = " --event-bus-name " + r.Bus
	}
	return e.fix(r.From, r.role != "", "replace the pattern by "+text,
		fmt.Sprintf("aws events put-rule --name %s%s --event-pattern %s", r.Name, bus, quoteShell(text)))
}
