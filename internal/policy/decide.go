package policy

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Facts is the input of a decision.
type Facts struct {
	// Now is the time of the decision.
	Now time.Time
	// Notices are all notices of the record.
	Notices []v1beta1.Notice
	// Since is when an earlier interruption of the same instance was completed: earlier
	// approvals do not count. Zero: there was none.
	Since time.Time
	// Answered are the keys of notices that are handled: by an earlier interruption, or while
	// others still apply, such as a completed reboot.
	Answered []string
	// Unconfirmed is set while notices say that the instance is stopped or terminated, its
	// kubelet is Ready, and EC2 does not confirm it. These notices do not count then: their
	// pods would be killed although they run.
	Unconfirmed bool
	// Node is the node of the instance; nil if the cluster has none.
	Node *corev1.Node
	// Policies are all policies of the cluster, in any order.
	Policies []v1beta1.InterruptionPolicy
	// Approval is a person's approval, if any.
	Approval *v1beta1.UserAction
	// Begun is when the drain began to serve the subject BegunFor; zero: none has begun. BegunFor is
	// also set for a node that is only cordoned or marked, and BegunDeadline was the deadline then. An
	// empty BegunFor with a Begun matches what decides.
	Begun         time.Time
	BegunFor      string
	BegunDeadline *v1beta1.Deadline
	// Held is set while a person holds the drain, and Released is when the latest hold
	// ended. Lifeboat sets no deadline of its own while a person holds the drain.
	Held     bool
	Released time.Time
	// Extended is set while Lifeboat sends heartbeats for the lifecycle hooks of the instance's
	// Auto Scaling group. ExtendedUntil is when no further heartbeat can extend them. Retained is set if
	// the group keeps an instance that is not drained by then.
	Extended      bool
	ExtendedUntil time.Time
	Retained      bool
}

// Decision is the action, and why.
type Decision struct {
	// Decision is the part that is reported in the record's status.
	v1beta1.Decision
	// Notice is the deciding notice.
	Notice v1beta1.Notice
	// Deadline is the effective deadline, if any.
	Deadline *v1beta1.Deadline
	// InstanceGone is set if nothing runs on the instance any more: it is stopped or
	// terminated, and its pods are lost and must be deleted. It is false while the instance is
	// stopping or shutting down: its pods may still stop gracefully.
	InstanceGone      bool
	StrategyByDefault bool                 // set if no rule states the strategy
	DoNotDisrupt      v1beta1.DoNotDisrupt // how long a pod's do-not-disrupt annotation holds it
	// Withdrawn is set if the cloud has withdrawn every notice: the node is restored. Nothing
	// else of the decision applies then.
	Withdrawn bool
	// NotBefore is when the action may begin; zero: now. It is always later than now, earlier
	// than a soft deadline, and zero with a firm one. An action that has begun in a window
	// continues after it closes; the caller must remember that.
	NotBefore time.Time
	// Next is when another notice may become the deciding one: the caller must decide again by
	// then. Zero: none may.
	Next time.Time
	// Until is, for Notify and Cordon without a deadline, when the risk is over and the node is
	// restored; zero: never.
	Until time.Time
	// About is the subject that an approval must name to count: Say.About.
	About string
	// Continues is set if the node was cordoned, drained or marked for this subject, and the cloud has not
	// moved it so far that this would not have begun yet. Approval, window and budget count only
	// then as passed. Begun is when its drain began; zero: it has not.
	Continues bool
	Begun     time.Time
	// Approved is set if a person has approved the action, required or not.
	Approved bool
	// AwaitsApproval is set if an approval is required and missing.
	AwaitsApproval bool
	// ProceedsAt is when the action begins without an answer, while approval is awaited; zero:
	// never.
	ProceedsAt time.Time
	// What follows is from the governing policy; Terminations has a default.
	Workloads     []v1beta1.Workload
	Budget        *v1beta1.Budget
	Terminations  v1beta1.Terminations
	Hooks         []v1beta1.Hook
	Notifications []v1beta1.Notification
	Deregistering time.Duration // how long pods wait for load balancers at most; zero: they do not
	// Considered has every policy and rule that was compared, in order, with why it applies or
	// does not.
	Considered []Considered
}

// Decide returns the decision. It reports false if no notice is valid. A notice that drains the node
// now decides alone. Beside one with a firm deadline that does not, only a person's request can.
func Decide(f Facts) (Decision, bool) {
	standing := counting(f)
	first, ok := decideOn(f, standing, standing)
	switch {
	case !ok:
		return withdrawn(f)
	case first.drainsNow(), first.InstanceGone:
		return hasten(f, first, standing), true
	case !isRequested(first.Notice) && notice.IsFirm(first.Notice.Deadline):
		return passOver(f, first, standing, requests(standing))
	}
	return passOver(f, first, standing, standing)
}

// drainsNow reports whether a node must be drained now, without waiting for anything. A drain that has
// begun waits for nothing any more.
func (d *Decision) drainsNow() bool {
	return (d.Action == v1beta1.ActionDrain || d.Action == v1beta1.ActionTerminate) &&
		(d.NotBefore.IsZero() && !d.AwaitsApproval || !d.Begun.IsZero())
}

// decideOn returns the decision on the one of the candidates that has the highest rank. Who decides and
// when the machine ends are two questions: the end is the earliest that any standing notice states.
func decideOn(f Facts, standing, candidates []v1beta1.Notice) (Decision, bool) {
	ruling, ok := notice.Ruling(candidates)
	if !ok {
		return Decision{}, false
	}
	q := &matchContext{node: f.Node, notice: ruling}
	chosen := q.match(f.Policies)
	begun := f.begunFor(ruling)
	chosen = q.guard(q.deferVoluntary(q.spareControlPlane(chosen), !begun.IsZero()), standing)
	d := Decision{
		Notice: ruling, About: about(ruling), Begun: begun, InstanceGone: notice.InstanceGone(standing),
		DoNotDisrupt: cmp.Or(chosen.doNotDisrupt, v1beta1.DoNotDisruptUntilLastCall),
		Considered:   q.considered,
	}
	d.Action, d.Policy, d.Rule = chosen.action, chosen.policy, chosen.rule
	d.moves(chosen)
	d.governedBy(q.effectivePolicy())

	deadline := chosen.due(f, ruling, candidates)
	starts := chosen.begin(ruling, deadline, f.Now)
	d.NotBefore = starts.notBefore
	d.Deadline = harden(ruling, deadline, starts, f.Now)
	if begins(d.Action) {
		d.Deadline, d.Next = machineEnd(f, ruling, d.Deadline, standing)
	}
	d.Until = riskOver(d)

	d.Approved = approved(f, ruling, standing)
	agreed := chosen.consent(f, d)
	d.AwaitsApproval, d.ProceedsAt = agreed.awaited, agreed.proceedsAt
	d.Continues = f.continues(ruling, starts.notBefore.After(f.Now) || agreed.awaited)
	if !d.Continues {
		d.Begun = time.Time{}
	}
	d.Message = chosen.message(agreed, starts)
	return d, true
}

// moves sets how pods are moved, if they are.
func (d *Decision) moves(c match) {
	if c.action != v1beta1.ActionDrain && c.action != v1beta1.ActionTerminate {
		return
	}
	d.Strategy, d.StrategyByDefault = cmp.Or(c.strategy, v1beta1.StrategySurge), c.strategy == ""
	if d.StrategyByDefault && isGoing(d.Notice) { // its pods end within seconds, and eviction stops their traffic at once
		d.Strategy = v1beta1.StrategyEvict
	}
	d.Replacement = c.replacement
}

// governedBy sets what applies with any rule of the policy, and with none.
func (d *Decision) governedBy(p *v1beta1.InterruptionPolicy) {
	d.Terminations = v1beta1.Terminations{MaxConcurrent: intstr.FromString(terminationShare)}
	if p == nil {
		return
	}
	d.EffectivePolicy = p.Name
	d.Workloads, d.Budget, d.Hooks, d.Notifications = p.Spec.Workloads, p.Spec.Budget, p.Spec.Hooks, p.Spec.Notifications
	d.Deregistering = deregistering(p)
	if p.Spec.Terminations != nil {
		d.Terminations = *p.Spec.Terminations
	}
}

// counting returns the unhandled notices received after since. A notice that the instance is
// shutting down or gone always has a deadline (see ending). A stopped instance that runs again
// cancels its earlier state changes: if there was no leader meanwhile, its pods would be deleted
// although they run.
func counting(f Facts) []v1beta1.Notice {
	var counting []v1beta1.Notice
	lived := notice.Lived(f.Notices, f.Node)
	for _, n := range notice.Unanswered(f.Notices, f.Answered) {
		if f.Unconfirmed && notice.NeedsConfirmation(&n) {
			continue
		}
		if n.Kind == notice.KindInstanceStateChange && !n.Drill && !lived.IsZero() && !n.Time.After(lived) {
			n.Withdrawn = true
		}
		if !n.Withdrawn && isGoing(n) {
			n.Deadline = ending(n)
		}
		counting = append(counting, n)
	}
	return withoutOutlived(counting, f.Now)
}

// withoutOutlived leaves out reclaims that the instance has outlived, if another notice counts: EC2 started
// it again. The record normally has completed them; it has not if its status cannot be written.
func withoutOutlived(counting []v1beta1.Notice, now time.Time) []v1beta1.Notice {
	kept := slices.DeleteFunc(slices.Clone(counting), func(n v1beta1.Notice) bool {
		ends := n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineHard && !isGoing(n) && !isTermination(n)
		return ends && !now.Before(n.Deadline.Time.Add(notice.AfterDeadline))
	})
	if slices.ContainsFunc(kept, func(n v1beta1.Notice) bool { return !n.Withdrawn }) {
		return kept
	}
	return counting
}

// begin says when an action may begin, and why. An action with a firm deadline begins now. One
// with a soft deadline begins notBefore it, or, with a window, when that first opens from then
// on. If the window does not open in time, it begins an hour before the deadline: late is worse
// than outside of the window. An instance that its group already terminates does not wait
// either.
func (c match) begin(ruling v1beta1.Notice, deadline *v1beta1.Deadline, now time.Time) startTime {
	switch {
	case isRequested(ruling): // a person chose the time: now
		return startTime{}
	case isTermination(ruling):
		return c.regardless("its group is taking the instance away")
	case notice.IsEstimated(deadline):
		return c.regardless("the instance is shutting down")
	case notice.IsFirm(deadline):
		return c.regardless("the deadline is hard")
	case c.window == nil && deadline == nil:
		return startTime{}
	case c.window == nil:
		return c.before(deadline, cmp.Or(c.notBefore, lead), now, "")
	case deadline == nil:
		return c.whenOpen(now, now)
	}
	return c.inTime(deadline, now)
}

// regardless begins now and ignores the rule's times.
func (c match) regardless(because string) startTime {
	if c.window == nil {
		return startTime{}
	}
	return startTime{because: "its window does not count, since " + because}
}

// due is the deadline of what decides: that of the notices, or else one that bounds the drain.
func (c match) due(f Facts, ruling v1beta1.Notice, notices []v1beta1.Notice) *v1beta1.Deadline {
	deadline, begun := notice.Deadline(notices), f.begunFor(ruling)
	switch {
	case c.action != v1beta1.ActionDrain && c.action != v1beta1.ActionTerminate:
		return deadline
	case isRequested(ruling):
		return ruling.Deadline.DeepCopy()
	case isTermination(ruling) && f.Extended:
		return c.extended(f, begun, notices, deadline)
	case c.action == v1beta1.ActionTerminate && deadline == nil && !begun.IsZero() && !f.Held:
		return notice.At(whole(latest(begun, f.Released).Add(cmp.Or(c.drainTimeout, terminationTime))), v1beta1.DeadlineHard)
	}
	return deadline
}

func isTermination(n v1beta1.Notice) bool { return n.Kind == notice.KindAutoScalingTermination }

// startTime is when an action may begin, and why not now.
type startTime struct {
	notBefore time.Time // zero: now
	because   string    // a clause; empty if there is no reason
}
