package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// matchContext is the notice to match, and the policies and rules compared so far.
type matchContext struct {
	node       *corev1.Node
	notice     v1beta1.Notice
	says       *v1beta1.InterruptionPolicy // the governing policy
	invalid    []string                    // why that policy is not valid
	considered []Considered
}

// match is the rule that applies.
type match struct {
	policy, rule string
	action       v1beta1.Action
	doNotDisrupt v1beta1.DoNotDisrupt
	strategy     v1beta1.Strategy
	replacement  v1beta1.Replacement
	approval     v1beta1.Approval
	ifUnanswered v1beta1.Unanswered
	notBefore    time.Duration // zero: not set
	drainTimeout time.Duration // zero: not set
	window       *window
	because      string
}

// match returns the first rule of the governing policy for the notice, or else the built-in
// default.
func (q *matchContext) match(policies []v1beta1.InterruptionPolicy) match {
	chosen := q.matchPolicies(policies)
	if chosen == nil {
		return q.useDefault()
	}
	d := defaultFor(q.notice, q.node)
	q.consider("", d.name, false, fmt.Sprintf("is not used: a rule of policy %s applies, and this is the built-in default", chosen.policy))
	chosen.replacement = cmp.Or(chosen.replacement, d.replacement())
	return q.asRequested(*chosen)
}

// useDefault returns the built-in default for the notice.
func (q *matchContext) useDefault() match {
	why := "no policy selects the node"
	switch {
	case len(q.invalid) > 0:
		why = fmt.Sprintf("policy %s is not valid", q.says.Name)
	case q.says != nil:
		why = fmt.Sprintf("policy %s has no rule for it", q.says.Name)
	}
	d := defaultFor(q.notice, q.node)
	q.consider("", d.name, true, "rules: it is the built-in default, since "+why)
	return match{
		rule: d.name, action: d.action, replacement: d.replacement(),
		because: fmt.Sprintf("built-in default for %s, since %s; %s", subject(q.notice), why+q.howToCorrect(), d.because),
	}
}

// defaultRule is a built-in rule: for notices that no policy matches, and for what the rule of a
// policy does not state.
type defaultRule struct {
	name   string
	action v1beta1.Action
	// replaces is set if a replacement is started before the drain.
	replaces bool
	because  string // ends a sentence that begins with the action
}

func (d defaultRule) replacement() v1beta1.Replacement {
	if d.replaces {
		return v1beta1.ReplacementBefore
	}
	return v1beta1.ReplacementNone
}

// defaultFor returns the built-in rule for a notice about a node; the node may be nil.
//
//nolint:gocyclo // one row for each kind
func defaultFor(n v1beta1.Notice, node *corev1.Node) defaultRule {
	const drain, notify = v1beta1.ActionDrain, v1beta1.ActionNotify
	switch n.Kind {
	case notice.KindSpotInterruption: // two minutes, which cannot be extended
		return defaultRule{n.Kind, drain, true, "EC2 takes the instance back"}
	case notice.KindCapacityReservationInterruption: // the same time, and as hard
		return defaultRule{n.Kind, drain, true, "EC2 takes the capacity back that the instance was lent"}
	case notice.KindCapacityBlockExpiration:
		return defaultRule{n.Kind, drain, false, "the Capacity Block that the instance runs in ends"}
	case notice.KindAutoScalingTermination: // the group waits for its hook, and launches a replacement if it needs one
		return defaultRule{n.Kind, drain, true, leaves(n)}
	case notice.KindScheduledChange:
		if n.InstanceAction == notice.ActionMaintain { // the pods survive it
			return defaultRule{n.Kind + " (maintain)", notify, false, "the instance loses its network or power for a moment, and goes on"}
		}
		if disturbs(n) { // stop, retirement, reboot
			return defaultRule{n.Kind, drain, n.InstanceAction != notice.ActionReboot, "AWS has planned it"}
		}
	case notice.KindInstanceStatus:
		// Termination cannot be undone, and the checks of a whole zone can be wrong.
		if node == nil || Pool(node) == "" {
			return defaultRule{n.Kind, notify, false, "the instance fails its status checks, and its node belongs to no pool, so nothing would replace it"}
		}
		return defaultRule{n.Kind, notify, false, "the instance fails its status checks; a policy with action Terminate lets its pool replace it"}
	case notice.KindRebalanceRecommendation: // most such warnings are not followed by a reclaim
		return defaultRule{n.Kind, notify, false, "the instance is only at risk"}
	case notice.KindInstanceStateChange:
		if isGoing(n) { // there was no warning, or it was missed: drain or delete what is left
			return defaultRule{n.Kind, drain, false, "the instance is going or gone"}
		}
	case notice.KindHealthIssue, notice.KindLifecycleActionFailure:
		return defaultRule{n.Kind, notify, false, "a person has to look at it"}
	}
	return defaultForOthers(n)
}

// isGoing reports whether the notice says that the instance is shutting down or gone.
func isGoing(n v1beta1.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange &&
		slices.Contains([]string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated}, n.InstanceState)
}

// subject names the notice in a reason.
func subject(n v1beta1.Notice) string {
	if detail := cmp.Or(n.InstanceState, n.EventTypeCode); detail != "" {
		return fmt.Sprintf("%s (%s)", n.Kind, detail)
	}
	return n.Kind
}
