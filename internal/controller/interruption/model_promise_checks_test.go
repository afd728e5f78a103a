package interruption

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// checkLeave checks a request that makes a pod leave.
func (b *bookkeeping) checkLeave(q *model.Request, pod *corev1.Pod, page *podHistory) {
	in, i := b.recordOf(page.instance), b.inst(page.instance)
	if b.isLate(page.instance) || !i.deletedAt.IsZero() {
		return
	}
	switch {
	case in == nil:
		b.run.broken(belongs, "%s: %s has no record", q, page.instance)
		return
	case b.nodeOf(page.instance) == nil || !i.off.IsZero() || i.ended:
		return // nothing is left to protect
	case ownerKind(pod) == "DaemonSet":
		b.run.fail("%s: it is a DaemonSet's", q)
	}
	wants := b.wants(in, v1beta1.ActionDrain, v1beta1.ActionTerminate)
	b.noteBegun(in)
	switch {
	case len(wants) > 0:
	case slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return i.done[changeOf(&n)] && !n.Withdrawn }):
		b.run.broken(handledOnce, "%s: its change was handled before", q)
	default:
		b.run.broken(belongs, "%s: no standing notice wants it now; begun %v, notices %+v", q, i.begun, in.Spec.Notices)
	}
	grace := *pod.Spec.TerminationGracePeriodSeconds
	if q.Stop.Grace != nil && *q.Stop.Grace < grace && !b.mayShorten(in, time.Duration(grace)*time.Second) {
		b.run.broken(passedDate, "%s: it gets a grace of %d s of %d s, and nothing ends its instance by then", q, *q.Stop.Grace, grace)
	}
	if q.Verb == "delete" && pod.DeletionTimestamp == nil {
		b.checkDelete(q, in, pod)
	}
	b.checkSuccessor(q, in, pod, page)
}

// checkDelete checks a deletion that no budget can refuse.
func (b *bookkeeping) checkDelete(q *model.Request, in *v1beta1.Interruption, pod *corev1.Pod) {
	_, refused := b.run.Allows(pod)
	switch {
	case b.mayOverride(in, pod):
		if refused != nil {
			b.overrides++
		}
	case refused != nil:
		b.run.broken(overridesEnd, "%s: its budget forbids that: %v", q, refused)
	case isHeld(pod):
		b.run.broken(overridesEnd, "%s: its annotation forbids that", q)
	}
	if !isDisruptionTarget(pod) && !b.disturbed(b.run.c.Now()) && !b.run.refused(pod.Spec.NodeName, b.run.c.Now(), writePodStatus) {
		b.run.broken(saysWhy, "%s: it has no condition DisruptionTarget", q)
	}
}

// checkSuccessor checks that a pod of a Deployment which may run twice leaves only once enough others are
// Ready, while there is time for that.
func (b *bookkeeping) checkSuccessor(q *model.Request, in *v1beta1.Interruption, pod *corev1.Pod, page *podHistory) {
	a := b.run.App(pod.Labels["app"])
	now := b.run.c.Now()
	if a == nil || a.Kind != "ReplicaSet" || !a.Deployed || !model.IsReady(pod) || pod.DeletionTimestamp != nil || isHeld(pod) ||
		now.Sub(page.bound) < time.Minute || b.run.refused("", time.Time{}, writeSurge, writeRecord) || b.disturbed(now) {
		return
	}
	if waited := now.Sub(page.surged); !page.surged.IsZero() && waited >= 5*time.Minute {
		return // its successor has had its time
	}
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: now}
	if p := effectivePolicy(c.policies, c.node); p != nil && len(p.Spec.Workloads) > 0 {
		return
	}
	for _, n := range b.standing(in) {
		if s := c.ruleOf(n).Strategy; s != "" && s != v1beta1.StrategySurge || n.InstanceState != "" {
			return
		}
		if n.Deadline != nil && now.After(n.Deadline.Time.Add(-modelMargin-grace-a.StartsIn-time.Minute)) {
			return
		}
	}
	if b.isTerminatedSoon(in, grace+a.StartsIn+time.Minute) {
		return
	}
	ready := 0
	for _, p := range b.run.Pods(func(p *corev1.Pod) bool { return p.Labels["app"] == a.Name && p.Namespace == a.Namespace }) {
		if b.pods[p.UID].flapped {
			return
		}
		if model.IsReady(p) && p.DeletionTimestamp == nil && p.UID != pod.UID {
			ready++
		}
	}
	if ready < a.Replicas {
		b.run.broken(firstReady, "%s: %d others are Ready, and %d are wanted", q, ready, a.Replicas)
	}
}

// checkMarks checks a patch of a node that keeps pods off it, or has done so.
func (b *bookkeeping) checkMarks(q *model.Request, was *corev1.Node) {
	id := instanceOf(was)
	is, in := b.run.Node(q.Key.Name), b.recordOf(id)
	if is == nil || in == nil {
		return
	}
	i := b.inst(id)
	switch held := b.isHeldBack(is); {
	case held && !b.isHeldBack(was):
		b.marks++
		i.workAt = b.run.c.Now()
		wants := b.wants(in, v1beta1.ActionCordon, v1beta1.ActionDrain, v1beta1.ActionTerminate)
		b.noteBegun(in)
		if len(wants) == 0 && !b.isLate(id) && i.deletedAt.IsZero() && i.off.IsZero() {
			b.run.broken(belongs, "%s: no standing notice wants it now: %+v", q, in.Spec.Notices)
		}
	case !held && b.isHeldBack(was):
		b.putBacks++
		clear(i.begun)
	}
}

// checkTerminate checks that an instance is terminated only for a notice whose rule says so.
func (b *bookkeeping) checkTerminate(q *model.Request) {
	id := q.Key.Name
	in, i := b.recordOf(id), b.inst(id)
	if b.isLate(id) || !i.deletedAt.IsZero() {
		return
	}
	if in == nil || len(b.wants(in, v1beta1.ActionTerminate)) == 0 {
		b.run.broken(belongs, "%s: no standing notice says so", q)
	}
}

// checkHookRun checks that a hook runs only for work that was begun.
func (b *bookkeeping) checkHookRun(instance string, when v1beta1.HookTime) {
	in, i := b.recordOf(instance), b.inst(instance)
	if in == nil || b.isLate(instance) || !i.deletedAt.IsZero() {
		return
	}
	switch {
	case i.workAt.IsZero() || i.workAt.Before(endedBefore(in)):
		if !b.run.refused(i.node, time.Time{}, writeNode, writeRecord) {
			b.run.broken(hooksBegun, "%s of %s: no work was begun", when, instance)
		}
	case when == v1beta1.HookAfterDrain && b.nodeOf(instance) != nil && i.off.IsZero() && b.hasUnasked(in):
		b.run.broken(hooksBegun, "%s of %s: there are pods that were not asked to leave", when, instance)
	case when == v1beta1.HookBeforeDrain && len(b.wants(in, v1beta1.ActionDrain, v1beta1.ActionTerminate)) == 0:
		b.run.broken(hooksBegun, "%s of %s: no standing notice wants a drain", when, instance)
	}
}

// hasUnasked reports whether pods that have to leave were not asked to.
func (b *bookkeeping) hasUnasked(in *v1beta1.Interruption) bool {
	c := case_{record: in, node: b.nodeOf(in.Name), policies: b.policies(), now: b.run.c.Now()}
	p := effectivePolicy(c.policies, c.node)
	for _, page := range b.pods {
		if page.instance == in.Name && page.gone.IsZero() && page.asked.IsZero() && page.tried.IsZero() && b.run.c.Now().Sub(page.bound) > behind &&
			!isStaying(page.pod) && !isHeld(page.pod) && !mayKeepPods(verdict{effectivePolicy: p}) {
			return true
		}
	}
	return false
}
