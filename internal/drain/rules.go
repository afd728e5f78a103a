package drain

import (
	"fmt"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// rule looks at one pod and decides the step for a reason, or has no opinion.
type rule struct {
	cause  v1beta1.PodReason
	decide func(s *planContext, c *podState) (Verdict, bool)
}

// rulesInOrder lists the rules; the first with an opinion wins.
func rulesInOrder() []rule {
	return []rule{
		{v1beta1.PodReasonDaemonSet, daemonSetStays},
		{v1beta1.PodReasonStatic, staticStays},
		{v1beta1.PodReasonFinished, finishedStays},
		{v1beta1.PodReasonInstanceGone, instanceGone},
		{v1beta1.PodReasonGraceCut, leavingTooLate},
		{v1beta1.PodReasonTerminating, leaving},
		{v1beta1.PodReasonKeptByPolicy, leftInPlace},
		{v1beta1.PodReasonDoNotDisrupt, respected},            // the policy puts it above the deadline
		{v1beta1.PodReasonReturned, cameBack},                 // until its last call
		{v1beta1.PodReasonLastCall, heldAtLastCall},           // a PodDisruptionBudget holds it
		{v1beta1.PodReasonDoNotDisrupt, doNotDisrupt},         // until its turn
		{v1beta1.PodReasonGate, gated},                        // until their turn
		{v1beta1.PodReasonOrder, outOfOrder},                  // until its turn
		{v1beta1.PodReasonSuccessorNotReady, awaitsSuccessor}, // until its turn
		{v1beta1.PodReasonSuccessorFirst, successorFirst},     // the policy says Surge, and it may run twice
		{v1beta1.PodReasonDisruptionBudget, heldByBudget},
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
	v := Verdict{Step: StepEvict, Cause: v1beta1.PodReasonNothingHolds, GraceSeconds: s.graceLeft(c)}
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
