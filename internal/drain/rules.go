package drain

import (
	"fmt"
	"strings"
)

// rule looks at one pod and decides the step, or has no opinion.
type rule func(s *planContext, c *podState) (Verdict, bool)

// ruleOfCause is a rule, with the cause of its verdicts.
type ruleOfCause struct {
	cause  Cause
	decide rule
}

// rulesInOrder lists the rules; the first with an opinion wins.
func rulesInOrder() []ruleOfCause {
	return []ruleOfCause{
		{CauseDaemonSet, daemonSetStays},
		{CauseStatic, staticStays},
		{CauseFinished, finishedStays},
		{CauseInstanceGone, instanceGone},
		{CauseGraceCut, leavingTooLate},
		{CauseTerminating, leaving},
		{CauseKept, leftInPlace},
		{CauseDoNotDisrupt, respected},            // the policy puts it above the deadline
		{CauseReturned, cameBack},                 // until its last call
		{CauseLastCall, heldAtLastCall},           // a PodDisruptionBudget holds it
		{CauseDoNotDisrupt, doNotDisrupt},         // until its turn
		{CauseGate, gated},                        // until their turn
		{CauseOrder, outOfOrder},                  // until its turn
		{CauseSuccessorNotReady, awaitsSuccessor}, // until its turn
		{CauseSuccessorFirst, successorFirst},     // the policy says Surge, and it may run twice
		{CauseDisruptionBudget, heldByBudget},
		// otherwise: evict, since nothing holds it
	}
}

func say(step Step, reason string) (Verdict, bool) {
	return Verdict{Step: step, Reason: reason}, true
}

func leaving(s *planContext, c *podState) (Verdict, bool) {
	if !isLeaving(c.pod) {
		return Verdict{}, false
	}
	end, grace := c.pod.DeletionTimestamp.Time, graceGiven(c.pod)
	if !s.now.Before(stuckAt(c.pod)) {
		return say(StepLeaving, fmt.Sprintf("leaving: its grace of %s ended at %s and it is still there; %s", seconds(grace), clock(end), finalizers(c.pod)))
	}
	reason := fmt.Sprintf("leaving: asked to stop at %s with grace %s, which ends at %s", clock(end.Add(-grace)), seconds(grace), clock(end))
	if at := s.cutAt(c); !at.IsZero() {
		reason += fmt.Sprintf(", after the deadline; it is cut short at %s", clock(at))
	}
	return say(StepLeaving, reason)
}

// heldAtLastCall deletes a pod that the Eviction API would not evict, or refused to.
func heldAtLastCall(s *planContext, c *podState) (Verdict, bool) {
	if !s.lastCallReached(c) {
		return Verdict{}, false
	}
	p := permitFor(c)
	var over []string
	why := p.why
	switch {
	case !p.granted:
		over = append(over, "PodDisruptionBudget "+strings.Join(names(c.budgets), ", "))
	case c.refused != "":
		over, why = append(over, "refused eviction"), "its last eviction was refused: "+brief(c.refused)
	default:
		return Verdict{}, false
	}
	if c.hold.active() {
		over = append(over, "do-not-disrupt")
	}
	p.take(c)
	cut := s.graceLeft(c)
	return Verdict{
		Step:         StepDelete,
		Reason:       fmt.Sprintf("deleted at its last call: %s; %s", why, s.timing(c, cut)),
		GraceSeconds: cut,
		Overrides:    strings.Join(over, ", "),
	}, true
}

func heldByBudget(s *planContext, c *podState) (Verdict, bool) {
	p := permitFor(c)
	if p.granted {
		return Verdict{}, false
	}
	c.byBudget = true
	return say(StepWaits, fmt.Sprintf("waits: %s; %s%s", p.why, s.atTheLatest(c), c.whyNotSurged()))
}

func evict(s *planContext, c *podState) Verdict {
	p := permitFor(c)
	p.take(c)
	c.markReleased()
	why := p.why
	if c.whyReleased != "" {
		why = c.whyReleased + "; " + why
	}
	v := Verdict{Step: StepEvict, GraceSeconds: s.graceLeft(c)}
	if c.hold.active() {
		v.Overrides = "do-not-disrupt"
		why = fmt.Sprintf("%s holds it no longer, since %s", c.hold.by, s.whyOverridden(c))
	}
	if c.refused != "" {
		why += ", though its last eviction was refused: " + brief(c.refused)
	}
	if c.hold.typo != "" {
		why += fmt.Sprintf(" (%s is neither \"true\" nor a duration, so it counts for nothing)", c.hold.typo)
	}
	v.Reason = fmt.Sprintf("goes now: %s; %s%s", why, s.timing(c, v.GraceSeconds), c.whyNotSurged())
	return v
}
