package interruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// cordonWithin and askWithin are the time limits of the product without faults. Pods may
	// wait until other interrupted nodes are cordoned.
	cordonWithin = 2 * time.Second
	askWithin    = barrierTimeout + 3*time.Second
	// behind is how long after a change the product may act on the old state: its caches lag,
	// and its requests take time.
	behind = 15 * time.Second
)

// checkPass checks the result of a pass.
func (r *modelRun) checkPass(key string, result reconcile.Result, err error) {
	var kind, name string
	_, _ = fmt.Sscan(key, &kind, &name)
	r.bookkeeping.passes++
	if kind != "record" {
		return
	}
	i, now := r.bookkeeping.inst(name), r.c.Now()
	if i.passes++; now.Sub(i.burst) > time.Minute {
		i.burst, i.passes = now, 0
	}
	if i.passes > 400 && r.people {
		r.broken(backsOff, "%s: %d passes within %s", key, i.passes, now.Sub(i.burst))
		r.halted = true
	} else if i.passes > 400 {
		r.fail("%s: %d passes within %s", key, i.passes, now.Sub(i.burst))
	}
	in := r.bookkeeping.recordOf(name)
	if err != nil || in == nil || finished(in) || now.Sub(i.changed) < behind || r.life == nil || r.bookkeeping.disturbed(now) ||
		r.refused(i.node, time.Time{}, writeRecord) {
		return
	}
	for _, left := range record.Pending(record.Drain(&in.Status)) {
		page := r.bookkeeping.pods[left.UID]
		if page != nil && !page.gone.IsZero() && now.Sub(page.gone) > 2*behind+r.chaos.held+r.slack() && left.State != "Lost" {
			r.fail("%s: pod %s is gone since %s, and still pending: %s", key, left.Name, r.bookkeeping.at(page.gone), left.State)
		}
	}
	ready := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionReady)
	if (ready == nil || ready.Message == "") && !r.bookkeeping.isAtBarrier(now) {
		r.fail("%s is not finished and does not say what it waits for", key)
	}
	asked := slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return n.Kind == notice.KindRequested && !n.Withdrawn })
	if result.RequeueAfter <= 0 && !asked && (ready == nil || len(record.Pending(record.Drain(&in.Status))) == 0) {
		r.fail("%s never ends: %v", key, ready)
	}
}

// checkDeadline checks an instance whose deadline has come.
func (b *bookkeeping) checkDeadline(instance string) {
	d, ok := b.decision(instance)
	i, now := b.inst(instance), b.run.c.Now()
	in := b.recordOf(instance)
	if !ok || !d.drains() || !firm(d.deadline) || d.instanceGone || !i.off.IsZero() || d.awaits || d.notBefore.After(now) ||
		d.deadline.Time.Sub(now).Abs() > time.Second || b.nodeOf(instance) == nil {
		return
	}
	from := latest(i.changed, b.run.lastPolicyChange(), i.deletedAt)
	if soft := d.notice.Deadline; soft != nil && soft.Type == v1beta1.DeadlineSoft {
		from = latest(from, d.deadline.Time.Add(-time.Hour))
	}
	for i := range in.Spec.Notices { // the node is restored once it has outlived a reclaim
		if until := decidesUntil(in, in.Spec.Notices[i].ID); until.Before(now) {
			from = latest(from, until)
		}
	}
	if from = b.earliestStart(in, from); from.IsZero() {
		return
	}
	due := b.quietSpan(from, cordonWithin+b.run.slack())
	if b.countObligation(due); due.Before(now) && (i.cordoned.IsZero() || i.cordoned.After(due)) && !i.uncordoned {
		b.run.fail("%s had to be cordoned by %s, and was at %s", instance, b.at(due), b.at(i.cordoned))
	}
	for _, uid := range b.sortedPods() {
		page := b.pods[uid]
		if page.instance != instance || isStaying(page.pod) || mayKeepPods(d) || respectedHold(page.pod, d.worth()) {
			continue
		}
		grace := time.Duration(*page.pod.Spec.TerminationGracePeriodSeconds) * time.Second
		due := b.quietSpan(latest(from, page.bound, d.deadline.Time.Add(-modelMargin-grace)), askWithin+b.run.slack())
		if b.countObligation(due); due.Before(now) && (page.asked.IsZero() || page.asked.After(due)) {
			b.run.fail("pod %s on %s had to be asked to stop by %s, and was at %s: %s", page.pod.Name, instance, b.at(due), b.at(page.asked), podReason(in, uid))
		}
	}
}

// countObligation counts whether a requirement was met, or excused by a trouble.
func (b *bookkeeping) countObligation(due time.Time) {
	if due.Before(b.run.c.Now()) {
		b.obliged++
	} else {
		b.excused++
	}
}

func isStaying(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return pod.Status.Phase == corev1.PodSucceeded || (owner != nil && owner.Kind == "DaemonSet")
}

// mayKeepPods reports whether the policy may leave pods of a workload in place.
func mayKeepPods(d verdict) bool {
	return d.effectivePolicy != nil && slices.ContainsFunc(d.effectivePolicy.Spec.Workloads, func(w v1beta1.Workload) bool { return w.Strategy == v1beta1.StrategyNever })
}

func respectedHold(pod *corev1.Pod, mode v1beta1.DoNotDisrupt) bool {
	return mode == v1beta1.DoNotDisruptRespect && len(pod.Annotations) > 0
}

// checkEnd checks the world at the end of the run.
func (b *bookkeeping) checkEnd() {
	for _, n := range b.nodes() {
		in := b.recordOf(instanceOf(n))
		if in != nil && !finished(in) || b.run.refused(n.Name, time.Time{}, writeNode, writeSurge, writeRecord) {
			continue
		}
		want := b.as[n.Name]
		if diff := cmp.Diff(want, n, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(corev1.Node{}, "Status"),
			cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "Generation")); diff != "" {
			b.run.fail("node %s is not as it was (-was +is):\n%s", n.Name, diff)
		}
	}
	for _, p := range b.run.Pods(func(p *corev1.Pod) bool { return p.Labels[v1beta1.LabelSurged] != "" && p.DeletionTimestamp == nil }) {
		in := b.recordOf(b.pods[p.UID].instance)
		if n := b.run.Node(p.Spec.NodeName); n != nil && (in == nil || finished(in)) && !b.run.refused(n.Name, time.Time{}, writeSurge, writeNode, writeRecord) {
			b.run.fail("pod %s/%s was taken from its ReplicaSet and neither left nor was given back", p.Namespace, p.Name)
		}
	}
	b.run.Each("Interruption", func(o client.Object) {
		in, ok := o.(*v1beta1.Interruption)
		switch {
		case !ok || finished(in):
		case b.run.people:
			b.checkEnds(in)
		default:
			b.checkUnfinished(in)
		}
	})
	for id, i := range b.insts {
		for _, pod := range i.overrides {
			if !i.announced[pod] {
				b.run.fail("pod %s was deleted although a budget held it, and the record of %s does not say so", pod, id)
			}
		}
	}
}

// isAtBarrier reports whether a record may wait, unwritten, for other nodes to be cordoned: the process began
// again a moment ago.
func (b *bookkeeping) isAtBarrier(now time.Time) bool {
	return slices.ContainsFunc(b.troubles, func(t disturbance) bool { return now.Sub(t.to) < barrierTimeout+behind/2 })
}

// checkUnfinished checks that a record which is not finished long after all deadlines names what it
// waits for, with a time.
func (b *bookkeeping) checkUnfinished(in *v1beta1.Interruption) {
	d, _ := b.decision(in.Name)
	it := b.run.life.queue["record "+in.Name]
	if d.notBefore.After(b.run.c.Now()) && it != nil && !it.due.IsZero() || b.inDoubt(in) {
		return
	}
	if b.lasts(d) {
		return
	}
	if in.Status.Phase == v1beta1.PhaseQueued && slices.ContainsFunc(b.nodes(), func(n *corev1.Node) bool {
		other, ok := b.decision(instanceOf(n))
		return ok && b.lasts(other) || b.inDoubt(b.recordOf(instanceOf(n)))
	}) {
		return // a node that is drained counts in its budget as long as it is in doubt, or its checks fail
	}
	b.run.fail("%s is not finished: phase %s, %s; pods %+v; decision %+v", in.Name, in.Status.Phase,
		meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionReady).Message, record.Pending(record.Drain(&in.Status)), in.Status.Decision)
}

// lasts reports whether a drain lasts until status checks pass.
func (b *bookkeeping) lasts(d verdict) bool {
	return d.notice.Kind == notice.KindInstanceStatus && d.action == v1beta1.ActionDrain
}

// inDoubt reports whether a record waits for EC2 to confirm its notice. Without a confirmation
// its instance is never terminated.
func (b *bookkeeping) inDoubt(in *v1beta1.Interruption) bool {
	if in == nil || finished(in) {
		return false
	}
	if meta.IsStatusConditionFalse(in.Status.Conditions, v1beta1.ConditionCorroborated) {
		return true // EC2 contradicts the notice
	}
	d, ok := b.decision(in.Name)
	return ok && d.action == v1beta1.ActionTerminate && !confirmed(d.notice.Kind, in.Spec.Notices)
}

func (b *bookkeeping) at(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return fmt.Sprintf("%.2f", t.Sub(modelEpoch).Seconds())
}

func (b *bookkeeping) sortedPods() []types.UID {
	var all []types.UID
	for uid := range b.pods {
		all = append(all, uid)
	}
	slices.Sort(all)
	return all
}

// knowsLeaving reports whether the process has seen that a pod leaves. A process that is seconds
// behind repeats the request, which may have been lost.
func (r *modelRun) knowsLeaving(pod *corev1.Pod) bool {
	if r.life == nil {
		return false
	}
	at, ok := r.life.left[leaving(pod)]
	return ok && at.Before(r.life.queue["record "+r.bookkeeping.pods[pod.UID].instance].began)
}

func (r *modelRun) lastPolicyChange() time.Time { return r.bookkeeping.policyChanged }

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// slack is the additional time that the product gets in a slow run.
func (r *modelRun) slack() time.Duration {
	return 3*(r.chaos.lag+r.chaos.sluggish+r.chaos.slow) + requeueCache
}

// podReason is the record's reason for a pod.
func podReason(in *v1beta1.Interruption, pod types.UID) string {
	for _, left := range record.Pending(record.Drain(&in.Status)) {
		if left.UID == pod {
			return string(left.State) + ": " + left.Message
		}
	}
	if in.Status.Decision == nil {
		return "no status was written"
	}
	return fmt.Sprintf("not listed; %s: %s", in.Status.Phase, in.Status.Decision.Message)
}
