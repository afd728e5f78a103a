package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// matchContext is the notice to match, and the policies and rules compared so far.
type matchContext struct {
	node       *corev1.Node
	notice     v1alpha1.Notice
	says       *v1alpha1.InterruptionPolicy // the governing policy
	invalid    []string                     // why that policy is not valid
	considered []Considered
}

// match is the rule that applies.
type match struct {
	policy, rule string
	action       v1alpha1.Action
	doNotDisrupt v1alpha1.DoNotDisrupt
	strategy     v1alpha1.Strategy
	replacement  v1alpha1.Replacement
	approval     v1alpha1.Approval
	ifUnanswered v1alpha1.Unanswered
	notBefore    time.Duration // zero: not set
	drainTimeout time.Duration // zero: not set
	window       *window
	because      string
}

// match returns the first rule of the governing policy for the notice, or else the built-in
// default.
func (q *matchContext) match(policies []v1alpha1.InterruptionPolicy) match {
	var ranked []*v1alpha1.InterruptionPolicy
	for i := range policies {
		ranked = append(ranked, &policies[i])
	}
	slices.SortFunc(ranked, func(a, b *v1alpha1.InterruptionPolicy) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	var chosen *match
	for _, p := range ranked {
		if objection, objects := q.policyMismatch(p); objects {
			q.consider(p.Name, "", false, objection)
			continue
		}
		q.says = p
		if q.invalid = Validate(p.Spec); len(q.invalid) > 0 {
			q.consider(p.Name, "", false, q.whyGuarded())
			continue
		}
		q.consider(p.Name, "", false, fmt.Sprintf("has the say: it selects the node, and none that does has a priority above its %d", p.Spec.Priority))
		chosen = q.matchRules(p)
	}
	if chosen == nil {
		return q.useDefault()
	}
	q.consider("", defaultFor(q.notice, q.node).name, false, fmt.Sprintf("is not asked: a rule of policy %s rules, and this is the built-in default", chosen.policy))
	return *chosen
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
	c := match{
		rule: d.name, action: d.action,
		because: fmt.Sprintf("built-in default for %s, since %s; %s", subject(q.notice), why+q.howToCorrect(), d.because),
	}
	if d.replaces {
		c.replacement = v1alpha1.ReplacementBefore
	}
	return c
}

func (q *matchContext) consider(policy, rule string, rules bool, reason string) {
	q.considered = append(q.considered, Considered{Policy: policy, Rule: rule, Rules: rules, Reason: reason})
}

// message is the reported sentence: the action, why, and what it waits for.
func (c match) message(agreed approvalState, starts startTime) string {
	clauses := []string{fmt.Sprintf("%s: %s", c.action, c.because)}
	if agreed.because != "" {
		clauses = append(clauses, agreed.because)
	}
	switch {
	case starts.because == "":
	case agreed.awaited && !starts.notBefore.IsZero():
		clauses = append(clauses, "once approved "+starts.because)
	default:
		clauses = append(clauses, starts.because)
	}
	return strings.Join(clauses, "; ")
}

// defaultRule is a built-in rule, for notices that no policy matches.
type defaultRule struct {
	name    string
	matches matcher
	action  v1alpha1.Action
	// replaces is set if a replacement is started before the drain.
	replaces bool
	because  string // ends a sentence that begins with the action
}

// defaultFor returns the first built-in rule that matches a notice about a node; the node may be
// nil.
func defaultFor(n v1alpha1.Notice, node *corev1.Node) defaultRule {
	for _, d := range []defaultRule{
		{ // two minutes, which cannot be extended
			name: notice.KindSpotInterruption, matches: ofKind(notice.KindSpotInterruption),
			action: v1alpha1.ActionDrain, replaces: true, because: "EC2 takes the instance back",
		},
		{ // the same time, and as hard
			name: notice.KindCapacityReservationInterruption, matches: ofKind(notice.KindCapacityReservationInterruption),
			action: v1alpha1.ActionDrain, replaces: true, because: "EC2 takes the capacity back that the instance was lent",
		},
		{
			name: notice.KindCapacityBlockExpiration, matches: ofKind(notice.KindCapacityBlockExpiration),
			action: v1alpha1.ActionDrain, because: "the Capacity Block that the instance runs in ends",
		},
		{ // the group waits for its hook, and launches a replacement if it needs one
			name: notice.KindAutoScalingTermination, matches: ofKind(notice.KindAutoScalingTermination),
			action: v1alpha1.ActionDrain, replaces: true, because: leaves(n),
		},
		{ // the pods survive it
			name: notice.KindScheduledChange + " (maintain)", matches: onlyMaintained,
			action: v1alpha1.ActionNotify, because: "the instance loses its network or power for a moment, and goes on",
		},
		{ // stop, retirement, reboot
			name: notice.KindScheduledChange, matches: disturbs,
			action: v1alpha1.ActionDrain, replaces: n.InstanceAction != notice.ActionReboot, because: "AWS has planned it",
		},
		{ // for a share of the pool at a time
			name: notice.KindInstanceStatus, matches: ofKind(notice.KindInstanceStatus).and(node != nil && Pool(node) != ""),
			action: v1alpha1.ActionTerminate, because: "the instance fails its status checks, and its pool replaces it",
		},
		{ // without a pool nothing would replace it
			name: notice.KindInstanceStatus, matches: ofKind(notice.KindInstanceStatus),
			action: v1alpha1.ActionNotify, because: "the node belongs to no pool, so nothing would replace it",
		},
		{ // most such warnings are not followed by a reclaim
			name: notice.KindRebalanceRecommendation, matches: ofKind(notice.KindRebalanceRecommendation),
			action: v1alpha1.ActionNotify, because: "the instance is only at risk",
		},
		{ // there was no warning, or it was missed: drain or delete what is left
			name: notice.KindInstanceStateChange, matches: isGoing,
			action: v1alpha1.ActionDrain, because: "the instance is going or gone",
		},
	} {
		if d.matches(n) {
			return d
		}
	}
	if n.Kind == notice.KindHealthIssue || n.Kind == notice.KindLifecycleActionFailure {
		return defaultRule{name: n.Kind, action: v1alpha1.ActionNotify, because: "a person has to look at it"}
	}
	// A kind, a state or a code of a later release.
	return defaultRule{name: "Unknown", action: v1alpha1.ActionNotify, because: "this release does not know what it means"}
}

// matcher reports whether a built-in rule is for a notice.
type matcher func(v1alpha1.Notice) bool

func ofKind(kind string) matcher {
	return func(n v1alpha1.Notice) bool { return n.Kind == kind }
}

// and adds a condition.
func (m matcher) and(holds bool) matcher {
	return func(n v1alpha1.Notice) bool { return holds && m(n) }
}

// onlyMaintained reports whether a scheduled change only interrupts the instance's network or
// power for a moment.
func onlyMaintained(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindScheduledChange && n.InstanceAction == notice.ActionMaintain
}

// disturbs reports whether a scheduled change stops the workloads of the instance. A code that
// this release does not know has no action, and is only reported.
func disturbs(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindScheduledChange && n.InstanceAction != "" && n.InstanceAction != notice.ActionMaintain
}

// leaves says what the group does with the instance.
func leaves(n v1alpha1.Notice) string {
	if n.InstanceAction == notice.ActionReturn {
		return "its Auto Scaling group takes the instance back into its warm pool"
	}
	return "its Auto Scaling group terminates the instance"
}

// isGoing reports whether the notice says that the instance is shutting down or gone.
func isGoing(n v1alpha1.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange &&
		slices.Contains([]string{notice.StateStopping, notice.StateStopped, notice.StateShuttingDown, notice.StateTerminated}, n.InstanceState)
}

// subject names the notice in a reason.
func subject(n v1alpha1.Notice) string {
	if detail := cmp.Or(n.InstanceState, n.EventTypeCode); detail != "" {
		return fmt.Sprintf("%s (%s)", n.Kind, detail)
	}
	return n.Kind
}
