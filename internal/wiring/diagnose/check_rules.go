package diagnose

import (
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// severityOf is how bad it is that notices of some kinds are not heard. The spot
// warning is what Lifeboat is there for; the others may be left out on purpose.
func severityOf(kinds []string) finding.Severity {
	if slices.Contains(kinds, notice.KindSpotInterruption) {
		return finding.Broken
	}
	return finding.Warning
}

// checkRules looks for rules that never see an event, or send it elsewhere.
func checkRules(e *exam) []finding.Finding {
	var all []finding.Finding
	for _, r := range e.rules {
		all = append(all, e.deaf(r)...)
		all = append(all, e.aim(r)...)
	}
	return all
}

// deaf is about a rule that no event reaches.
func (e *exam) deaf(r *rule) []finding.Finding {
	var all []finding.Finding
	if !r.Enabled {
		all = append(all, finding.Finding{
			Severity: severityOf(r.meant), ID: idRuleDisabled, Object: r.object(), Kinds: r.meant,
			Problem: "it is disabled, so nothing passes it",
			Fix:     e.fix(r.From, false, "set its state to ENABLED", "aws events enable-rule --name "+r.Name),
		})
	}
	if !r.OnDefaultBus() {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idRuleCustomBus, Object: r.object(), Kinds: r.meant,
			Problem: fmt.Sprintf("it listens on the bus %s, but AWS services speak on the default bus of the account only", snapshot.BusName(r.Bus)),
			Fix: e.fix(r.From, false, "leave out the bus: the rule then is on the default one",
				fmt.Sprintf("aws events put-rule --name %s --event-pattern %s, and the target after it", r.Name, quoteShell(r.Pattern))),
		})
	}
	if r.elsewhere(e.Region) {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idRuleOtherRegion, Object: r.object(), Kinds: r.meant,
			Problem: fmt.Sprintf("it is in %s; a rule hears only what happens in its own region, and the cluster is in %s", snapshot.Part(r.ARN, 3), e.Region),
			Fix:     "make the rule and the queue in " + e.Region + ": " + e.apply(),
		})
	}
	return all
}

// aim is about where a rule sends what it matches.
func (e *exam) aim(r *rule) []finding.Finding {
	if !r.TargetsKnown || e.feeds(r) {
		return nil
	}
	if len(r.Targets) == 0 {
		return []finding.Finding{{
			Severity: finding.Broken, ID: idRuleNoTarget, Object: r.object(), Kinds: r.meant,
			Problem: "it has no target: what it matches goes nowhere",
			Fix:     e.fix(r.From, r.role != "", "make the queue its target", e.putTarget(r)),
		}}
	}
	if r.role == "" {
		return nil
	}
	var to []string
	for _, t := range r.Targets {
		to = append(to, t.ARN)
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idRuleWrongTarget, Object: r.object(), Kinds: r.meant,
		Problem: fmt.Sprintf("it sends what it matches to %s, and not to the queue %s that Lifeboat reads", list(to), e.queue.Name),
		Fix:     e.fix(r.From, true, "make "+e.queue.ARN+" its target", e.putTarget(r)),
	}}
}

func (e *exam) putTarget(r *rule) string {
	if e.queue.ARN == "" {
		return ""
	}
	return fmt.Sprintf("aws events put-targets --rule %s --targets Id=lifeboat-queue,Arn=%s", r.Name, e.queue.ARN)
}
