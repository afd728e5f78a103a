package doctor

import (
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// severityOf returns the severity of a missing delivery of some kinds. Spot
// interruptions are Lifeboat's main purpose; users can omit the other kinds on
// purpose.
func severityOf(kinds []string) finding.Severity {
	if slices.Contains(kinds, notice.KindSpotInterruption) {
		return finding.Broken
	}
	return finding.Warning
}

// checkRules reports rules that match no event, or that have another target.
func checkRules(e *diagnosis) []finding.Finding {
	var all []finding.Finding
	for _, r := range e.rules {
		all = append(all, e.checkReachable(r)...)
		all = append(all, e.checkDestination(r)...)
	}
	return all
}

// checkReachable reports a rule that no event reaches.
func (e *diagnosis) checkReachable(r *rule) []finding.Finding {
	var all []finding.Finding
	if !r.Enabled {
		all = append(all, finding.Finding{
			Severity: severityOf(r.intendedKinds), ID: idRuleDisabled, Object: r.object(), Kinds: r.intendedKinds,
			Problem: "it is disabled, so it sends nothing",
			Fix:     e.fix(r.From, false, "set its state to ENABLED", "aws events enable-rule --name "+r.Name),
			Change:  onRule(r, func(r *snapshot.Rule) { r.Enabled = true }),
		})
	}
	if !r.OnDefaultBus() {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idRuleCustomBus, Object: r.object(), Kinds: r.intendedKinds,
			Problem: fmt.Sprintf("it is on the bus %s, but AWS services send only to the account's default bus", snapshot.BusName(r.Bus)),
			Fix: e.fix(r.From, false, "remove the bus, so that the rule is on the default bus",
				fmt.Sprintf("aws events put-rule --name %s --event-pattern %s, then add the target", r.Name, quoteShell(r.Pattern))),
			Change: toDefaultBus(r),
		})
	}
	if r.inOtherRegion(e.Region) {
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idRuleOtherRegion, Object: r.object(), Kinds: r.intendedKinds,
			Problem: fmt.Sprintf("it is in %s, and the cluster is in %s; a rule receives only events of its own region", snapshot.Part(r.ARN, 3), e.Region),
			Fix:     "create the rule and the queue in " + e.Region + ": " + e.applyCommand(),
		})
	}
	return all
}

// checkDestination reports a rule with a wrong or missing target.
func (e *diagnosis) checkDestination(r *rule) []finding.Finding {
	topic := e.desired.Topic != "" && r.role != ""
	if !r.TargetsKnown || e.targetsQueue(r) || topic && len(r.To(e.desired.Target().ARN)) > 0 {
		return nil
	}
	if topic {
		return []finding.Finding{{
			Severity: finding.Broken, ID: idRuleWrongTarget, Object: r.object(), Kinds: r.intendedKinds,
			Problem: "the topic " + e.desired.Topic + ", from which the queue " + e.queue.Name + " receives, is not its target",
			Fix:     e.applyCommand(),
			Change: onRule(r, func(r *snapshot.Rule) {
				r.Targets = append(r.Targets, snapshot.Target{ID: e.desired.Target().ID, ARN: e.desired.Target().ARN})
			}),
		}}
	}
	if len(r.Targets) == 0 {
		return []finding.Finding{{
			Severity: finding.Broken, ID: idRuleNoTarget, Object: r.object(), Kinds: r.intendedKinds,
			Problem: "it has no target, so matched events are dropped",
			Fix:     e.fix(r.From, r.role != "", "add the queue as its target", e.putTarget(r)),
			Change:  e.addTarget(r),
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
		Severity: finding.Broken, ID: idRuleWrongTarget, Object: r.object(), Kinds: r.intendedKinds,
		Problem: fmt.Sprintf("its target is %s and not the queue %s that Lifeboat reads", joinList(to), e.queue.Name),
		Fix:     e.fix(r.From, true, "add "+e.queue.ARN+" as its target", e.putTarget(r)),
		Change:  e.addTarget(r),
	}}
}

func (e *diagnosis) putTarget(r *rule) string {
	if e.queue.ARN == "" {
		return ""
	}
	return fmt.Sprintf("aws events put-targets --rule %s --targets Id=lifeboat-queue,Arn=%s", r.Name, e.queue.ARN)
}
