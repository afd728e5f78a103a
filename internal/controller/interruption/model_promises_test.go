package interruption

import (
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// The promises that the worlds of people check. They are stated for each notice alone, as if there were
// no others: from when it may move pods, and whether and when it ends the instance. The product may do what
// any standing notice wants, and has to do what any standing notice needs.
const (
	lastCalls    = "every pod is asked to leave by its last call"
	belongs      = "what is done belongs to a notice that stands"
	passedDate   = "a date that has passed shortens no grace"
	handledOnce  = "a handled change is not handled again"
	firstEnd     = "the machine ends at the earliest end"
	worksOn      = "a request works until the node is empty"
	firstReady   = "successors are Ready before pods leave"
	saysWhy      = "a deleted pod says why"
	overridesEnd = "a budget is overridden only at last call"
	hooksBegun   = "hooks run only for work that was begun"
	backsOff     = "repetition backs off"
	ends         = "every record ends"
)

// promises are the promises that a failure breaks. One that is false is checked only with
// LIFEBOAT_MODEL_PROMISES=all: the product does not keep it yet.
var promises = map[string]bool{
	lastCalls: true, belongs: true, passedDate: true, handledOnce: true, firstEnd: true, worksOn: true, firstReady: true,
	saysWhy: true, overridesEnd: true, hooksBegun: true, backsOff: true, ends: true,
}

var allPromises = os.Getenv("LIFEBOAT_MODEL_PROMISES") == "all"

// maxRepeats is how often one process may repeat a refused request within an hour: a drain tries again every
// two seconds where something changes, and else every minute at last. More are allowed for each
// new notice.
const maxRepeats = 600

// broken reports a broken promise.
func (r *modelRun) broken(promise, format string, args ...any) {
	if promises[promise] || allPromises || r.promise == promise {
		r.fail(promise+": "+format, args...)
	}
}

// subject is what notices are about: a later one with the same subject replaces an earlier one.
type subject struct{ kind, source, name string }

func subjectKey(n *v1beta1.Notice) subject {
	if n.Subject == "" {
		return subject{n.Kind, n.Source, n.ID}
	}
	return subject{n.Kind, n.Source, n.Subject}
}

// change is what a planned change will do. Several sources may report it, and each of them repeatedly.
type change struct {
	subject
	action string
	date   time.Time
}

func changeOf(n *v1beta1.Notice) change {
	c := change{subject: subjectKey(n), action: n.InstanceAction}
	if n.Deadline != nil {
		c.date = n.Deadline.Time.UTC()
	}
	return c
}

// standing are the notices of a record that count: not withdrawn, and not handled before.
func (b *bookkeeping) standing(in *v1beta1.Interruption) []v1beta1.Notice {
	var all []v1beta1.Notice
	for _, n := range in.Spec.Notices {
		again := n.Kind == notice.KindScheduledChange && n.Subject != "" && b.inst(in.Name).done[changeOf(&n)]
		if !n.Withdrawn && !isHandledNotice(n, handledIn(in)) && !again {
			all = append(all, withShutdown(n))
		}
	}
	return all
}

// noteHandled remembers which changes are done.
func (b *bookkeeping) noteHandled(was, is *v1beta1.Interruption) {
	i := b.inst(is.Name)
	for _, n := range is.Spec.Notices {
		switch c := changeOf(&n); {
		case n.Withdrawn:
			delete(i.done, c) // it may be opened again
		case n.Kind != notice.KindScheduledChange, n.Deadline == nil, n.Deadline.Time.After(b.run.c.Now()):
		case isHandledNotice(n, handledIn(is)) && !isHandledNotice(n, handledIn(was)):
			i.done[c] = true
		}
	}
}

// ruleOf is the rule for a notice. Only the person who asks sets the action and time of a request.
func (c case_) ruleOf(n v1beta1.Notice) v1beta1.Rule {
	rule := c.ruleFor(effectivePolicy(c.policies, c.node), n)
	if n.Kind == notice.KindRequested {
		rule.Action, rule.Window, rule.NotBefore = v1beta1.ActionDrain, nil, nil
	}
	return rule
}

// startOf is when the action for a notice alone begins, at or after a time; zero: never.
func (b *bookkeeping) startOf(in *v1beta1.Interruption, n v1beta1.Notice, at time.Time) time.Time {
	c := case_{record: reopenedCopy(in), node: b.nodeOf(in.Name), policies: b.policies()}
	v := verdict{notice: n, rule: c.ruleOf(n), deadline: n.Deadline, instanceGone: isOff(n)}
	v.action = v.rule.Action
	by := n.Time.Add(2 * time.Hour) // unanswered, a request without a time goes ahead an hour after it was made
	if v.deadline != nil {
		by = v.deadline.Time.Time
	}
	if end, known := b.earliestEnd(in); known && n.Kind == notice.KindRequested && end.Before(by) {
		v.deadline = deadlineAt(end, v1beta1.DeadlineHard) // what is unanswered goes ahead before the machine ends
	}
	for range 10 {
		c.now, v.awaits, v.proceedsAt = at, false, time.Time{}
		v.notBefore = c.beginning(&v)
		c.consent(&v)
		switch {
		case v.awaits && v.proceedsAt.IsZero():
			return time.Time{}
		case v.awaits:
			at = v.proceedsAt
		case v.notBefore.After(at):
			at = v.notBefore
		default:
			return at
		}
	}
	return time.Time{}
}

// approvedFor reports whether a person approved the same change as another source reports it.
func approvedFor(in *v1beta1.Interruption, n *v1beta1.Notice) bool {
	return in.Spec.Approval != nil && slices.ContainsFunc(in.Spec.Notices, func(m v1beta1.Notice) bool {
		return m.Kind == n.Kind && m.Deadline != nil && n.Deadline != nil && in.Spec.Approval.About == subjectOf(m) &&
			m.Deadline.Time.Sub(n.Deadline.Time.Time).Abs() <= time.Hour
	})
}

// wants returns the standing notices whose action is one of these and has begun, or may begin now.
func (b *bookkeeping) wants(in *v1beta1.Interruption, actions ...v1beta1.Action) []v1beta1.Notice {
	var all []v1beta1.Notice
	i, now := b.inst(in.Name), b.run.c.Now()
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: now}
	for _, n := range b.standing(in) {
		begun, known := i.begun[subjectKey(&n)]
		continues := known && (n.Deadline == nil || !n.Deadline.Time.After(begun.date))
		start := b.startOf(in, n, now)
		may := continues || !start.IsZero() && !start.After(now) || approvedFor(in, &n)
		if may && (slices.Contains(actions, c.ruleOf(n).Action) || continues && slices.Contains(actions, begun.Action)) {
			all = append(all, n)
		}
	}
	return all
}

// begunWork is what was begun for a subject.
type begunWork struct {
	v1beta1.Action
	date time.Time
}

// noteBegun remembers for which notices work has begun: they continue after their window, and if the
// policy changes.
func (b *bookkeeping) noteBegun(in *v1beta1.Interruption) {
	i := b.inst(in.Name)
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: b.run.c.Now()}
	for _, n := range b.wants(in, v1beta1.ActionCordon, v1beta1.ActionDrain, v1beta1.ActionTerminate) {
		if begun, known := i.begun[subjectKey(&n)]; !known || changeOf(&n).date.After(begun.date) { // it was moved, and begins again
			i.begun[subjectKey(&n)] = begunWork{c.ruleOf(n).Action, changeOf(&n).date}
		}
	}
}

// noteContinued remembers for which notices the work on a node goes on: another one may have begun it.
func (b *bookkeeping) noteContinued(instance string) {
	n, in := b.nodeOf(instance), b.recordOf(instance)
	if n != nil && in != nil && b.isHeldBack(n) {
		b.noteBegun(in)
	}
}

// endOf is when the instance goes for a notice; false: the notice does not end it, or says no time.
func endOf(n *v1beta1.Notice) (time.Time, bool) {
	switch {
	case n.Deadline == nil || n.Kind == notice.KindRequested:
		return time.Time{}, false
	case n.Kind == notice.KindScheduledChange && (n.InstanceAction == "" || n.InstanceAction == notice.ActionMaintain):
		return time.Time{}, false
	}
	return n.Deadline.Time.Time, true
}

// earliestEnd is when the instance goes for the first of the standing notices.
func (b *bookkeeping) earliestEnd(in *v1beta1.Interruption) (first time.Time, known bool) {
	for _, n := range b.standing(in) {
		at, says := endOf(&n)
		outlived := b.nodeOf(in.Name) != nil && b.run.c.Now().Sub(at) >= 10*time.Minute // nothing more comes of it
		if says && !outlived && (!known || at.Before(first)) {
			first, known = at, true
		}
	}
	return first, known
}

// isLate reports whether the product may not know the present yet.
func (b *bookkeeping) isLate(instance string) bool {
	i, now := b.inst(instance), b.run.c.Now()
	return now.Sub(i.changed) < behind || now.Sub(b.run.lastPolicyChange()) < behind || now.Sub(i.booted) < behind || now.Sub(i.off) < behind
}

// isHeldBack reports whether Lifeboat keeps new pods off a node: it was schedulable before.
func (b *bookkeeping) isHeldBack(n *corev1.Node) bool {
	as := b.as[n.Name]
	return n.Spec.Unschedulable && as != nil && !as.Spec.Unschedulable
}

// mayShorten reports whether a pod's grace may be cut: its instance is gone, or goes before the grace ends.
func (b *bookkeeping) mayShorten(in *v1beta1.Interruption, grace time.Duration) bool {
	i, now := b.inst(in.Name), b.run.c.Now()
	if !i.off.IsZero() || i.ended || b.nodeOf(in.Name) == nil {
		return true
	}
	for _, n := range b.standing(in) {
		at, known := endOf(&n)
		planned := n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineSoft
		if isOff(n) || known && now.After(at.Add(-modelMargin-grace)) && (!planned || now.Before(at.Add(behind))) {
			return true
		}
	}
	return b.isTerminatedSoon(in, grace)
}

// isTerminatedSoon reports whether Lifeboat terminates the instance once a drain of two minutes is over.
func (b *bookkeeping) isTerminatedSoon(in *v1beta1.Interruption, grace time.Duration) bool {
	start := case_{record: in}.begun()
	return !start.IsZero() && len(b.wants(in, v1beta1.ActionTerminate)) > 0 && b.run.c.Now().After(start.Add(2*time.Minute-modelMargin-grace-behind))
}

// mayOverride reports whether what holds a pod may be overridden: it is the pod's last call before an end,
// or before the time by which a person wants the node to be empty.
func (b *bookkeeping) mayOverride(in *v1beta1.Interruption, pod *corev1.Pod) bool {
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if b.mayShorten(in, grace) {
		return true
	}
	return slices.ContainsFunc(b.standing(in), func(n v1beta1.Notice) bool {
		firm := n.Kind == notice.KindRequested && n.Deadline != nil || n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineEstimated
		return firm && b.run.c.Now().After(n.Deadline.Time.Add(-modelMargin-grace))
	})
}

// hasReasonTo reports whether a pod condition says that a disruption stops the pod.
func isDisruptionTarget(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind
	}
	return ""
}
