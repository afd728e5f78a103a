package interruption

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// expect schedules the checks of what an accepted notice needs.
func (b *bookkeeping) expect(instance string, n *v1beta1.Notice) {
	now, id := b.run.c.Now(), n.ID
	if at, ends := endOf(n); ends && at.After(now) {
		b.run.c.At(at.Add(-model.Grain), "end of "+instance, func() { b.checkEndComes(instance, id) })
	}
	if n.Kind == notice.KindRequested {
		for later := 30 * time.Minute; later < 6*time.Hour; later += 20 * time.Minute {
			b.run.c.At(now.Add(later), "request "+id, func() { b.checkWorksOn(instance, id) })
		}
	}
}

// find returns a standing notice of a record, by id, if its node and instance are there.
func (b *bookkeeping) find(instance, id string) (*v1beta1.Interruption, *v1beta1.Notice) {
	in, i := b.recordOf(instance), b.inst(instance)
	if in == nil || !i.off.IsZero() || i.ended || b.nodeOf(instance) == nil {
		return nil, nil
	}
	standing := b.standing(in)
	at := slices.IndexFunc(standing, func(n v1beta1.Notice) bool { return n.ID == id })
	if at < 0 {
		return nil, nil
	}
	return in, &standing[at]
}

// drainsFor reports whether a notice drains its node, and since when, at the latest.
func (b *bookkeeping) drainsFor(in *v1beta1.Interruption, n *v1beta1.Notice) (time.Time, bool) {
	i := b.inst(in.Name)
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: b.run.c.Now()}
	drains := func(a v1beta1.Action) bool { return a == v1beta1.ActionDrain || a == v1beta1.ActionTerminate }
	if !drains(c.ruleOf(*n).Action) {
		return time.Time{}, false
	}
	for _, other := range b.standing(in) { // a policy may say that an instance which goes is left alone
		if firm(other.Deadline) && !drains(c.ruleOf(other).Action) {
			return time.Time{}, false
		}
	}
	from := latest(i.accepted[n.ID], b.run.lastPolicyChange(), i.deletedAt, i.registered, i.booted)
	if say := in.Spec.Approval; say != nil {
		from = latest(from, say.Time.Time)
	}
	start := b.startOf(in, *n, from)
	return start, !start.IsZero()
}

// checkEndComes checks, when an instance is about to go, that all pods were asked by their last calls.
func (b *bookkeeping) checkEndComes(instance, id string) {
	in, n := b.find(instance, id)
	if in == nil || n.Deadline.Time.Sub(b.run.c.Now()).Abs() > time.Second {
		return
	}
	start, drains := b.drainsFor(in, n)
	if !drains {
		return
	}
	promise := lastCalls
	if slices.ContainsFunc(b.standing(in), func(n v1beta1.Notice) bool { return n.Kind == notice.KindRequested }) {
		promise = firstEnd
	}
	for _, uid := range b.sortedPods() {
		page := b.pods[uid]
		if page.instance != instance || isStaying(page.pod) || b.mayStay(in, n, page.pod) {
			continue
		}
		grace := time.Duration(*page.pod.Spec.TerminationGracePeriodSeconds) * time.Second
		due := b.quietSpan(latest(start, page.bound, n.Deadline.Time.Add(-modelMargin-grace)), askWithin+b.run.slack())
		asked := page.asked
		if !page.tried.IsZero() && (asked.IsZero() || page.tried.Before(asked)) {
			asked = page.tried
		}
		if b.countObligation(due); due.Before(b.run.c.Now()) && (asked.IsZero() || asked.After(due)) {
			b.run.broken(promise, "pod %s on %s had to be asked by %s for %s, and was at %s: %s", page.pod.Name, instance, b.at(due), id, b.at(asked), podReason(in, uid))
		}
	}
}

// mayStay reports whether a policy leaves a pod in place.
func (b *bookkeeping) mayStay(in *v1beta1.Interruption, n *v1beta1.Notice, pod *corev1.Pod) bool {
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: b.run.c.Now()}
	return mayKeepPods(verdict{effectivePolicy: effectivePolicy(c.policies, c.node)}) || respectedHold(pod, c.ruleOf(*n).DoNotDisrupt)
}

// checkWorksOn checks that a request which stands keeps new pods off the node, and that no pod stays which
// nothing holds.
func (b *bookkeeping) checkWorksOn(instance, id string) {
	in, n := b.find(instance, id)
	if in == nil || in.Spec.Hold != nil || b.inst(instance).uncordoned || b.run.life == nil {
		return
	}
	now := b.run.c.Now()
	start, drains := b.drainsFor(in, n)
	from := now.Add(-20 * time.Minute)
	if !drains || start.After(from) || b.run.refused(b.inst(instance).node, from, writeNode, writeRecord, writeSurge, writeEvict) ||
		slices.ContainsFunc(b.troubles, func(t disturbance) bool { return t.to.After(now.Add(-3 * time.Minute)) }) {
		return
	}
	b.obliged++
	if node := b.nodeOf(instance); !node.Spec.Unschedulable {
		if !b.isQueued(node) {
			b.run.broken(worksOn, "node %s is schedulable, and %s stands since %s: %s, %s", node.Name, id, b.at(start), in.Status.Phase, in.Status.Decision.Message)
		}
		return
	}
	for _, uid := range b.sortedPods() {
		if page := b.pods[uid]; page.instance == instance && b.isFree(page) && page.bound.Before(from) && !b.mayStay(in, n, page.pod) {
			b.run.c.After(3*time.Minute, "request "+id, func() { b.checkLeft(instance, id, page) })
		}
	}
}

// isFree reports whether nothing holds a pod that was not asked to leave.
func (b *bookkeeping) isFree(page *podHistory) bool {
	_, refused := b.run.Allows(page.pod)
	return page.asked.IsZero() && page.tried.IsZero() && page.gone.IsZero() && !isStaying(page.pod) && len(page.pod.Annotations) == 0 && refused == nil &&
		len(b.run.BudgetsOf(page.pod)) < 2
}

// checkLeft checks that a pod which could have left for minutes is asked to, or another one that uses the
// same budget.
func (b *bookkeeping) checkLeft(instance, id string, page *podHistory) {
	in, n := b.find(instance, id)
	now := b.run.c.Now()
	if in == nil || !b.isFree(page) || now.Sub(b.inst(instance).changed) < 4*time.Minute || now.Sub(b.run.lastPolicyChange()) < 4*time.Minute || b.mayStay(in, n, page.pod) {
		return
	}
	hooked := slices.ContainsFunc(b.policies(), func(p v1beta1.InterruptionPolicy) bool { return len(p.Spec.Hooks) > 0 })
	if hooked && b.run.refused(b.inst(instance).node, now.Add(-4*time.Minute), writeHook) {
		return // without a deadline, pods wait for a hook as long as it takes
	}
	for _, t := range b.troubles {
		if t.to.After(now.Add(-4 * time.Minute)) {
			return
		}
	}
	for _, other := range b.pods {
		if other.pod.Labels["app"] == page.pod.Labels["app"] && other.asked.After(now.Add(-4*time.Minute)) {
			return
		}
	}
	b.run.broken(worksOn, "pod %s on %s is not asked to leave, and %s stands: %s", page.pod.Name, instance, id, podReason(in, page.pod.UID))
}

// expectRestored checks later that a node is as it was if no standing notice wants otherwise.
func (b *bookkeeping) expectRestored(instance string) {
	due := b.quietSpan(b.run.c.Now(), behind+b.run.slack())
	b.run.c.At(due, "restoration of "+instance, func() { b.checkNotHeldBack(instance) })
}

// isQueued reports whether the policy of a node drains few nodes at a time, and drains others.
func (b *bookkeeping) isQueued(node *corev1.Node) bool {
	p := effectivePolicy(b.policies(), node)
	return p != nil && p.Spec.Budget != nil && slices.ContainsFunc(b.nodes(), func(n *corev1.Node) bool { return n.Name != node.Name && b.isHeldBack(n) })
}

func (b *bookkeeping) checkNotHeldBack(instance string) {
	in, i, n := b.recordOf(instance), b.inst(instance), b.nodeOf(instance)
	if in == nil || n == nil || b.run.life == nil || !i.off.IsZero() || !i.terminated.IsZero() || !i.deletedAt.IsZero() || b.isLate(instance) ||
		b.run.refused(n.Name, b.run.c.Now().Add(-time.Minute), writeNode, writeRecord, writeSurge) || b.disturbed(b.run.c.Now()) {
		return
	}
	b.obliged++
	if b.isHeldBack(n) && len(b.wants(in, v1beta1.ActionCordon, v1beta1.ActionDrain, v1beta1.ActionTerminate)) == 0 {
		b.run.broken(belongs, "node %s is still cordoned, and no standing notice wants it: phase %s; begun %v; notices %+v", n.Name, in.Status.Phase, i.begun, in.Spec.Notices)
	}
}

// checkEnds checks a record that is not finished long after all events.
func (b *bookkeeping) checkEnds(in *v1beta1.Interruption) {
	i, now := b.inst(in.Name), b.run.c.Now()
	waits := b.isLate(in.Name) || in.Spec.Hold != nil || b.inDoubt2(in) || in.Status.Phase == v1beta1.PhaseQueued ||
		b.run.refused(i.node, time.Time{}, writeNode, writeRecord, writeSurge, writeTerminate) ||
		slices.ContainsFunc(b.standing(in), func(n v1beta1.Notice) bool {
			return n.Kind == notice.KindRequested || n.Kind == notice.KindInstanceStatus || n.Deadline != nil && n.Deadline.Time.After(now.Add(-time.Hour))
		})
	if !waits {
		b.run.broken(ends, "%s is not finished: phase %s; notices %+v; handled %v", in.Name, in.Status.Phase, in.Spec.Notices, handledIn(in))
	}
}

// inDoubt2 reports whether a termination waits for a confirmation that may never come.
func (b *bookkeeping) inDoubt2(in *v1beta1.Interruption) bool {
	return meta.IsStatusConditionFalse(in.Status.Conditions, v1beta1.ConditionCorroborated) || len(b.wants(in, v1beta1.ActionTerminate)) > 0
}

// finished reports whether nothing is left to do about a record: each notice is handled or withdrawn.
func finished(in *v1beta1.Interruption) bool {
	return in.Status.CompletionTime != nil && !slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool {
		return !n.Withdrawn && !isHandledNotice(n, handledIn(in))
	})
}
