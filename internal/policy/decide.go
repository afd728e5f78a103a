package policy

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Facts is all that a decision is made from.
type Facts struct {
	// Now is the moment of the decision.
	Now time.Time
	// Notices are all notices of the record.
	Notices []v1alpha1.Notice
	// Since is when an earlier interruption of the same instance was over: an
	// approval from before does not count. Zero: there was none.
	Since time.Time
	// Answered are the ids of notices that are handled: by an earlier interruption,
	// or while others still stand, such as a reboot that is over.
	Answered []string
	// Node is the node that the instance is; nil where there is none in the
	// cluster.
	Node *corev1.Node
	// Policies are all policies of the cluster, in any order.
	Policies []v1alpha1.InterruptionPolicy
	// Approval is a person's go-ahead, if there is one.
	Approval *v1alpha1.Say
	// Begun is when the node was cordoned for this interruption; zero where it
	// was not.
	Begun time.Time
	// Held is set while a person holds the drain, and Released is when the latest hold
	// ended. Lifeboat sets no deadline of its own while a person holds the drain.
	Held     bool
	Released time.Time
	// Extended is set while Lifeboat extends the lifecycle hooks that hold the
	// instance on its way out of its Auto Scaling group, and ExtendedUntil is when
	// they cannot be extended any more. Retained says that what is not drained by
	// then is kept by the group.
	Extended      bool
	ExtendedUntil time.Time
	Retained      bool
}

// Decision is what is to be done, and why.
type Decision struct {
	// Decision is the part that is reported in the record's status.
	v1alpha1.Decision
	// Notice is the notice that rules.
	Notice v1alpha1.Notice
	// Deadline is the deadline that rules, if there is one.
	Deadline *v1alpha1.Deadline
	// InstanceGone says that nothing runs on the instance any more: it is stopped or
	// terminated, its pods are lost and have to be cleaned up. It is false while
	// the instance is stopping or shutting down: its pods may still stop properly.
	InstanceGone bool
	// DoNotDisrupt is what a pod's do-not-disrupt annotation is worth.
	DoNotDisrupt v1alpha1.DoNotDisrupt
	// Withdrawn says that the cloud has taken every notice back: whatever was
	// done to the node is undone. Nothing else of the decision counts then.
	Withdrawn bool
	// NotBefore is when the action may begin; zero: now. It is always later
	// than now, earlier than a soft deadline, and zero under a firm one. What
	// has begun in a window goes on after it closes: that is the caller's to
	// remember.
	NotBefore time.Time
	// Next is when a notice that does not rule may come to: what is to be done is to be
	// asked again by then. Zero: none may.
	Next time.Time
	// Until is, for Notify and Cordon without a deadline, when the risk is
	// over and the node is put back; zero: never.
	Until time.Time
	// About is what an approval has to be about to count: Say.About.
	About string
	// Approved says that a person has agreed to it, wanted or not.
	Approved bool
	// AwaitsApproval says that a person has to agree first, and has not.
	AwaitsApproval bool
	// ProceedsAt is, while approval is awaited, when it goes ahead unanswered;
	// zero: never.
	ProceedsAt time.Time
	// Workloads, Budget, Terminations, Hooks and Notifications are those of the
	// governor (in the reported part); Terminations has the default where it says
	// nothing.
	Workloads     []v1alpha1.Workload
	Budget        *v1alpha1.Budget
	Terminations  v1alpha1.Terminations
	Hooks         []v1alpha1.Hook
	Notifications []v1alpha1.Notification
	// Considered is every policy and rule that was looked at, in order, with
	// why it rules or does not.
	Considered []Considered
}

// Considered is one policy, or one rule of it, that was looked at.
type Considered struct {
	// Policy is the policy's name; empty for the built-in defaults.
	Policy string
	// Rule is the rule's name or place; empty where the policy as a whole is
	// meant.
	Rule string
	// Rules says that this is the one that rules.
	Rules bool
	// Reason is a sentence that says why it rules or does not.
	Reason string
}

// Decide says what is to be done. It reports false where no notice counts. A notice about
// which nothing is done now, or ever, does not hide another by which the node is to be
// drained now, unless its deadline is firm: a sick instance is seen to although a change
// is planned in twelve days.
func Decide(f Facts) (Decision, bool) {
	notices := counting(f)
	first, ok := decideOn(f, notices)
	if !ok {
		return withdrawn(f)
	}
	if first.drainsNow() || first.InstanceGone || isFirm(first.Notice) {
		return first, true
	}
	for passed := []Decision{first}; ; {
		notices = notice.Unanswered(notices, []string{passed[len(passed)-1].Notice.ID})
		next, ok := decideOn(f, notices)
		if !ok {
			return first, true
		}
		if next.drainsNow() {
			next.Considered = append(passedOver(passed), next.Considered...)
			return next, true
		}
		passed = append(passed, next)
		first.Next = soonest(first.Next, next.NotBefore, next.ProceedsAt)
	}
}

// drainsNow reports whether a node is to be drained, and nothing is waited for.
func (d *Decision) drainsNow() bool {
	return (d.Action == v1alpha1.ActionDrain || d.Action == v1alpha1.ActionTerminate) && d.NotBefore.IsZero() && !d.AwaitsApproval
}

func isFirm(n v1alpha1.Notice) bool {
	return notice.IsFirm(n.Deadline)
}

// passedOver says of notices that would have come first why they do not rule.
func passedOver(decisions []Decision) []Considered {
	var all []Considered
	for _, d := range decisions {
		all = append(all, Considered{Policy: d.Policy, Rule: d.Rule, Reason: fmt.Sprintf(
			"%s is passed over, since another notice drains the node now and this does not. %s", subject(d.Notice), d.Message)})
	}
	return all
}

// soonest returns the earliest of some moments that are not zero; zero: none is.
func soonest(moments ...time.Time) time.Time {
	var first time.Time
	for _, at := range moments {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// decideOn says what is to be done about the notice that rules among some.
func decideOn(f Facts, notices []v1alpha1.Notice) (Decision, bool) {
	ruling, ok := notice.Ruling(notices, time.Time{})
	if !ok {
		return Decision{}, false
	}
	q := &matchContext{node: f.Node, notice: ruling}
	chosen := q.guard(q.match(f.Policies), notices)
	d := Decision{
		Notice: ruling, About: about(ruling), InstanceGone: notice.InstanceGone(notices, time.Time{}),
		DoNotDisrupt: cmp.Or(chosen.doNotDisrupt, v1alpha1.DoNotDisruptUntilLastCall),
		Considered:   q.considered,
	}
	d.Action, d.Policy, d.Rule = chosen.action, chosen.policy, chosen.rule
	d.moves(chosen)
	d.governedBy(q.governor())

	deadline := chosen.due(f, ruling, notices)
	starts := chosen.begin(ruling, deadline, f.Now)
	d.NotBefore = starts.notBefore
	d.Deadline = harden(ruling, deadline, starts, f.Now)
	d.Until = riskOver(d)

	d.Approved = approved(f, ruling, notices)
	agreed := chosen.consent(f, d)
	d.AwaitsApproval, d.ProceedsAt = agreed.awaited, agreed.proceedsAt
	d.Message = chosen.message(agreed, starts)
	return d, true
}

// moves fills in how pods are moved, where they are.
func (d *Decision) moves(c match) {
	if c.action != v1alpha1.ActionDrain && c.action != v1alpha1.ActionTerminate {
		return
	}
	d.Strategy = cmp.Or(c.strategy, v1alpha1.StrategyEvict)
	d.Replacement = cmp.Or(c.replacement, v1alpha1.ReplacementNone)
}

// governedBy fills in what holds whichever of the policy's rules rules, and
// where none does.
func (d *Decision) governedBy(p *v1alpha1.InterruptionPolicy) {
	d.Terminations = v1alpha1.Terminations{MaxConcurrent: intstr.FromString(terminationShare)}
	if p == nil {
		return
	}
	d.Governor = p.Name
	d.Workloads, d.Budget, d.Hooks, d.Notifications = p.Spec.Workloads, p.Spec.Budget, p.Spec.Hooks, p.Spec.Notifications
	if p.Spec.Terminations != nil {
		d.Terminations = *p.Spec.Terminations
	}
}

// withdrawn is the decision where no notice counts, if there were any.
func withdrawn(f Facts) (Decision, bool) {
	standing := counting(f)
	if !notice.AllWithdrawn(standing, time.Time{}) {
		return Decision{}, false
	}
	last := standing[len(standing)-1]
	q := &matchContext{node: f.Node, notice: last}
	q.match(f.Policies)
	d := Decision{
		Decision: v1alpha1.Decision{
			Action:  v1alpha1.ActionIgnore,
			Message: fmt.Sprintf("%s: %s", v1alpha1.ActionIgnore, whyWithdrawn(f, last)),
		},
		Notice: last, Withdrawn: true,
	}
	d.governedBy(q.governor()) // whose people want to be told
	return d, true
}

func whyWithdrawn(f Facts, last v1alpha1.Notice) string {
	if last.Kind == notice.KindInstanceStateChange && !notice.Lived(f.Notices, f.Node).IsZero() {
		return "the instance was started again after it was stopped"
	}
	return "AWS has taken back " + subject(last)
}

// counting returns the notices received after since that were not dealt with.
// One that says that the instance is shutting down or has gone always has a deadline
// (see ending). One that was stopped and runs again takes back what was said of its
// state until then: where nobody led meanwhile, its pods would be deleted although
// they run.
func counting(f Facts) []v1alpha1.Notice {
	var counting []v1alpha1.Notice
	lived := notice.Lived(f.Notices, f.Node)
	for _, n := range notice.Unanswered(f.Notices, f.Answered) {
		if n.Kind == notice.KindInstanceStateChange && !n.Drill && !lived.IsZero() && !n.Time.After(lived) {
			n.Withdrawn = true
		}
		if !n.Withdrawn && isGoing(n) {
			n.Deadline = ending(n)
		}
		counting = append(counting, n)
	}
	return counting
}

// ending is the deadline of a notice that says the instance is shutting down or has
// gone. While the operating system shuts down it is an estimate, even where the record
// says Hard: records that an earlier release made have the time of the notice there.
func ending(n v1alpha1.Notice) *v1alpha1.Deadline {
	d := notice.ShutdownDeadline(n.InstanceState, issued(n))
	if n.Deadline != nil && n.Deadline.Type == d.Type {
		return n.Deadline
	}
	return d
}

// issued is when the cloud says it issued the notice, or else when it came.
func issued(n v1alpha1.Notice) time.Time {
	if n.Time.IsZero() {
		return n.ReceivedTime.Time
	}
	return n.Time.Time
}

// riskOver is when a node that is only marked is put back.
func riskOver(d Decision) time.Time {
	if d.Deadline != nil || (d.Action != v1alpha1.ActionNotify && d.Action != v1alpha1.ActionCordon) {
		return time.Time{}
	}
	return issued(d.Notice).Add(notice.AtRiskFor)
}
