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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// cordonWithin and askWithin are how long the product may take for what has
	// become due while nothing goes wrong. Pods may wait for other doomed nodes
	// to be cordoned first.
	cordonWithin = 2 * time.Second
	askWithin    = barrierTimeout + 3*time.Second
	// behind is how much later than a change the product may act on what was
	// before: its caches lag, and its requests are under way for a while.
	behind = 15 * time.Second
)

// passed looks at what a pass came to.
func (r *modelRun) passed(key string, result reconcile.Result, err error) {
	var kind, name string
	_, _ = fmt.Sscan(key, &kind, &name)
	r.books.passes++
	if kind != "record" {
		return
	}
	i, now := r.books.inst(name), r.c.Now()
	if i.passes++; now.Sub(i.burst) > time.Minute {
		i.burst, i.passes = now, 0
	}
	if i.passes > 400 {
		r.fail("%s: %d passes within %s", key, i.passes, now.Sub(i.burst))
	}
	in := r.books.recordOf(name)
	if err != nil || in == nil || notice.Finished(in) || now.Sub(i.changed) < behind || r.life == nil || r.books.troubled(now) {
		return
	}
	ready := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Message == "" {
		r.fail("%s is in work and does not say what it waits for", key)
	}
	if result.RequeueAfter <= 0 && (ready == nil || len(record.Drain(&in.Status).PendingPods) == 0) {
		r.fail("%s waits for ever: %v", key, ready)
	}
}

// reckon holds an instance whose deadline has come against what should have
// happened by then.
func (b *books) reckon(instance string) {
	d, ok := b.decision(instance)
	i, now := b.inst(instance), b.run.c.Now()
	in := b.recordOf(instance)
	if !ok || !d.drains() || !firm(d.deadline) || d.instanceGone || !i.off.IsZero() || d.awaits || d.notBefore.After(now) ||
		d.deadline.Time.Sub(now).Abs() > time.Second || b.run.Node(i.node) == nil {
		return
	}
	from := latest(i.changed, b.run.lastPolicyChange(), i.calledOff)
	if soft := d.notice.Deadline; soft != nil && soft.Type == v1alpha1.DeadlineSoft {
		from = latest(from, d.deadline.Time.Add(-time.Hour))
	}
	if from = b.free(in, from); from.IsZero() {
		return
	}
	due := b.calm(from, cordonWithin+b.run.slack())
	if b.oblige(due); due.Before(now) && (i.cordoned.IsZero() || i.cordoned.After(due)) && !i.uncordoned {
		b.run.fail("%s was to be cordoned by %s, and was at %s", instance, b.at(due), b.at(i.cordoned))
	}
	for _, uid := range b.sortedPods() {
		page := b.pods[uid]
		if page.instance != instance || isStaying(page.pod) || never(d) || respectedHold(page.pod, d.worth()) {
			continue
		}
		grace := time.Duration(*page.pod.Spec.TerminationGracePeriodSeconds) * time.Second
		due := b.calm(latest(from, page.bound, d.deadline.Time.Add(-modelMargin-grace)), askWithin+b.run.slack())
		if b.oblige(due); due.Before(now) && (page.asked.IsZero() || page.asked.After(due)) {
			b.run.fail("pod %s on %s was to be asked to stop by %s, and was at %s: %s", page.pod.Name, instance, b.at(due), b.at(page.asked), said(in, uid))
		}
	}
}

// oblige counts whether what was due by then is in force, or excused by troubles.
func (b *books) oblige(due time.Time) {
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

// never reports whether a workload's treatment may leave pods where they are.
func never(d verdict) bool {
	return d.governor != nil && slices.ContainsFunc(d.governor.Spec.Workloads, func(w v1alpha1.Workload) bool { return w.Strategy == v1alpha1.StrategyNever })
}

func respectedHold(pod *corev1.Pod, mode v1alpha1.DoNotDisrupt) bool {
	return mode == v1alpha1.DoNotDisruptRespect && len(pod.Annotations) > 0
}

// close looks at how the world was left.
func (b *books) close() {
	for _, n := range b.nodes() {
		in := b.recordOf(instanceOf(n))
		if in != nil && !notice.Finished(in) {
			continue
		}
		want := b.as[n.Name]
		if diff := cmp.Diff(want, n, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(corev1.Node{}, "Status"),
			cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "Generation")); diff != "" {
			b.run.fail("node %s is not as it was (-was +is):\n%s", n.Name, diff)
		}
	}
	for _, p := range b.run.Pods(func(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelSurged] != "" && p.DeletionTimestamp == nil }) {
		in := b.recordOf(b.pods[p.UID].instance)
		if n := b.run.Node(p.Spec.NodeName); n != nil && (in == nil || notice.Finished(in)) {
			b.run.fail("pod %s/%s was taken from its ReplicaSet and neither left nor was given back", p.Namespace, p.Name)
		}
	}
	b.run.Each("Interruption", func(o client.Object) {
		in, ok := o.(*v1alpha1.Interruption)
		if !ok || notice.Finished(in) {
			return
		}
		b.unfinished(in)
	})
	for id, i := range b.insts {
		for _, pod := range i.overrides {
			if !i.told[pod] {
				b.run.fail("pod %s was deleted although a budget held it, and the record of %s does not say so", pod, id)
			}
		}
	}
}

// unfinished: what is still in work long after all deadlines waits for something
// that it names, until a time.
func (b *books) unfinished(in *v1alpha1.Interruption) {
	d, _ := b.decision(in.Name)
	it := b.run.life.queue["record "+in.Name]
	if d.notBefore.After(b.run.c.Now()) && it != nil && !it.due.IsZero() {
		return
	}
	b.run.fail("%s is still in work: phase %s, %s; pods %+v; decision %+v", in.Name, in.Status.Phase,
		meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionReady).Message, record.Drain(&in.Status).PendingPods, in.Status.Decision)
}

func (b *books) at(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return fmt.Sprintf("%.2f", t.Sub(modelEpoch).Seconds())
}

func (b *books) sortedPods() []types.UID {
	var all []types.UID
	for uid := range b.pods {
		all = append(all, uid)
	}
	slices.Sort(all)
	return all
}

// knowsLeaving reports whether the process has seen that a pod leaves: one that
// is seconds behind asks again, since its request may have been lost.
func (r *modelRun) knowsLeaving(pod *corev1.Pod) bool {
	if r.life == nil {
		return false
	}
	at, ok := r.life.left[leaving(pod)]
	return ok && at.Before(r.life.queue["record "+r.books.pods[pod.UID].instance].began)
}

func (r *modelRun) lastPolicyChange() time.Time { return r.books.policyChanged }

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// slack is what a run's slowness adds to what the product may take.
func (r *modelRun) slack() time.Duration {
	return 3*(r.chaos.lag+r.chaos.sluggish+r.chaos.slow) + staleCacheRequeue
}

// said is what a record says of a pod.
func said(in *v1alpha1.Interruption, pod types.UID) string {
	for _, left := range record.Drain(&in.Status).PendingPods {
		if left.UID == pod {
			return left.Verdict + ": " + left.Reason
		}
	}
	return fmt.Sprintf("not listed; %s: %s", in.Status.Phase, in.Status.Decision.Message)
}
