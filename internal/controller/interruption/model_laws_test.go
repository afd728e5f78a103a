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
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

const (
	// cordonWithin and askWithin are how long the product may take for what has
	// become due while nothing goes wrong. Pods may wait for other doomed nodes
	// to be cordoned first.
	cordonWithin = 2 * time.Second
	askWithin    = patience + 3*time.Second
	// behind is how much later than a change the product may act on what was
	// before: its caches lag, and its requests are under way for a while.
	behind = 15 * time.Second
)

// asks looks at a request that is about to be carried out, and returns what is
// to look at its answer.
func (b *books) asks(q *model.Request) func(error) {
	b.writes++
	switch {
	case q.Key.Kind == "Pod" && (q.Verb == "delete" || q.Verb == "evict"):
		return b.asksPod(q)
	case q.Verb == "terminate":
		return b.asksTermination(q)
	case q.Key.Kind == "Node":
		return b.asksNode(q)
	case q.Key.Kind == "Interruption":
		return b.asksRecord(q)
	}
	b.run.fail("%s: the product has no business with that", q)
	return func(error) {}
}

// asksPod holds a request to stop a pod against the laws.
func (b *books) asksPod(q *model.Request) func(error) {
	pod, _ := b.run.Get(q.Key).(*corev1.Pod)
	if q.Stop.UID == nil {
		b.run.fail("%s: not tied to a UID", q)
		return func(error) {}
	}
	if pod == nil || pod.UID != *q.Stop.UID {
		return func(error) {}
	}
	page := b.pods[pod.UID]
	b.mayStop(q, pod, page)
	b.notTwice(q, pod)
	b.lastCall(q, pod, page)
	was := page.asked
	return func(err error) {
		if err == nil && was.IsZero() {
			page.askedByProduct = true
		}
	}
}

// mayStop: nothing of another node is touched, and nothing that policy does not
// say.
func (b *books) mayStop(q *model.Request, pod *corev1.Pod, page *podPage) {
	now, i := b.run.c.Now(), b.inst(page.instance)
	owner := metav1.GetControllerOf(pod)
	d, ok := b.decision(page.instance)
	lately := now.Sub(i.changed) < behind || now.Sub(b.run.lastPolicyChange()) < behind
	switch {
	case owner != nil && owner.Kind == "DaemonSet":
		b.run.fail("%s: it is a DaemonSet's", q)
	case pod.Status.Phase == corev1.PodSucceeded && now.Sub(page.bound) > behind:
		b.run.fail("%s: it has finished", q)
	case !ok && !lately:
		b.run.fail("%s: on %s, of which there is no record with a notice that counts", q, page.instance)
	case ok && !modelDrains(d) && !lately:
		b.run.fail("%s: on %s, which is not to be drained: %s", q, page.instance, d.Message)
	case ok && modelDrains(d) && i.cordoned.IsZero() && b.run.Node(i.node) != nil && !lately && !d.InstanceGone:
		// Somebody may have uncordoned it a moment ago.
		if n := b.run.Node(i.node); !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintInterrupted }) {
			b.run.fail("%s: node %s is not cordoned", q, i.node)
		}
	}
}

// notTwice: no pod is asked to stop twice, but to be quicker.
func (b *books) notTwice(q *model.Request, pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil || (q.Stop.Grace != nil && *q.Stop.Grace < *pod.DeletionGracePeriodSeconds) {
		return
	}
	l := b.run.life
	if l == nil || l.Process != q.Process {
		return
	}
	began := l.queue["record "+b.pods[pod.UID].instance].began
	if at, ok := l.left[leaving(pod)]; ok && at.Before(began) {
		b.run.fail("%s: it is leaving, and the process saw that at %s", q, b.at(at))
	}
	// Where both the watch and the record are behind it may be asked again: the
	// API server then does nothing.
	if told, ok := l.told[pod.UID]; ok && told.at.Before(began) && began.Sub(told.asked) < askedAgain {
		b.run.fail("%s: its record said so at %s", q, b.at(told.at))
	}
	b.repeats++
}

// lastCall: what holds a pod is overridden at last call before a hard deadline
// only.
func (b *books) lastCall(q *model.Request, pod *corev1.Pod, page *podPage) {
	d, ok := b.decision(page.instance)
	now, i := b.run.c.Now(), b.inst(page.instance)
	if !ok || d.InstanceGone || !modelDrains(d) || now.Sub(i.changed) < behind || now.Sub(b.run.lastPolicyChange()) < behind {
		return
	}
	held := pod.Annotations[v1alpha1.AnnotationDoNotDisrupt] == "true" && d.DoNotDisrupt != v1alpha1.DoNotDisruptIgnore
	if held && d.DoNotDisrupt == v1alpha1.DoNotDisruptRespect && pod.DeletionTimestamp == nil {
		b.run.fail("%s: do-not-disrupt is to be respected", q)
	}
	if held && !hard(d) && pod.DeletionTimestamp == nil {
		b.run.fail("%s: do-not-disrupt holds it, and no hard deadline is near", q)
	}
	shortens := q.Stop.Grace != nil && pod.DeletionTimestamp != nil && *q.Stop.Grace < *pod.DeletionGracePeriodSeconds
	if q.Verb != "delete" || (pod.DeletionTimestamp != nil && !shortens) {
		return
	}
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if pod.DeletionTimestamp != nil {
		grace = 2 * time.Second
	}
	if !hard(d) || now.Before(d.Deadline.Time.Add(-modelMargin-grace)) {
		b.run.fail("%s: deleted before its last call: deadline %v", q, d.Deadline)
	}
	if _, refused := b.run.Allows(pod); refused != nil && b.run.Node(pod.Spec.NodeName) != nil {
		b.overrides++
		i.overrides = append(i.overrides, pod.Namespace+"/"+pod.Name)
	}
}

// asksTermination: an instance is terminated where policy says so, once its pods
// have left, and not again within a minute.
func (b *books) asksTermination(q *model.Request) func(error) {
	id := q.Key.Name
	d, ok := b.decision(id)
	i, now := b.inst(id), b.run.c.Now()
	if !ok || d.Action != v1alpha1.ActionTerminate {
		if now.Sub(i.changed) > behind && now.Sub(b.run.lastPolicyChange()) > behind {
			b.run.fail("%s: policy does not say so: %s", q, d.Message)
		}
	}
	if !i.terminated.IsZero() && now.Sub(i.terminated) < time.Minute-behind/3 {
		b.run.fail("%s: it was asked %s ago", q, now.Sub(i.terminated))
	}
	return func(error) {}
}

// asksNode: only nodes that a record is about, or that carry the mark, are
// touched.
func (b *books) asksNode(q *model.Request) func(error) {
	n := b.run.Node(q.Key.Name)
	if n == nil {
		return func(error) {}
	}
	i := b.inst(instanceOf(n))
	_, marked := n.Annotations[v1alpha1.AnnotationBefore]
	if len(i.accepted) == 0 && !marked {
		b.run.fail("%s: nothing was heard of it", q)
	}
	return func(err error) {
		is := b.run.Node(q.Key.Name)
		if err != nil || is == nil {
			return
		}
		if _, still := is.Annotations[v1alpha1.AnnotationBefore]; marked && !still {
			b.putBacks++
		} else if !marked && still {
			b.marks++
		}
	}
}

// asksRecord bounds how much is written.
func (b *books) asksRecord(q *model.Request) func(error) {
	i := b.inst(q.Key.Name)
	if q.Sub != "status" {
		return func(error) {}
	}
	i.writes++
	pods := 0
	for _, page := range b.pods {
		if page.instance == q.Key.Name {
			pods++
		}
	}
	if most := 20 + 12*pods + 12*len(i.accepted) + 2*len(b.troubles); i.writes > most {
		b.run.fail("%s: the %d. time, with %d pods and %d notices", q, i.writes, pods, len(i.accepted))
	}
	return func(error) {}
}

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
	if err != nil || in == nil || notice.Finished(in) || now.Sub(i.changed) < behind || r.life == nil {
		return
	}
	ready := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Message == "" {
		r.fail("%s is in work and does not say what it waits for", key)
	}
	if result.RequeueAfter <= 0 && (ready == nil || len(in.Status.PodsLeft) == 0) {
		r.fail("%s waits for ever: %v", key, ready)
	}
}

// reckon holds an instance whose deadline has come against what should have
// happened by then.
func (b *books) reckon(instance string) {
	d, ok := b.decision(instance)
	i, now := b.inst(instance), b.run.c.Now()
	in := b.recordOf(instance)
	if !ok || !modelDrains(d) || !hard(d) || d.InstanceGone || !i.off.IsZero() || d.AwaitsApproval || d.NotBefore.After(now) ||
		d.Deadline.Time.Sub(now) > time.Second || in.Status.CompletionTime != nil || b.run.Node(i.node) == nil {
		return
	}
	from := latest(i.accepted[d.Notice.ID], b.run.lastPolicyChange(), i.calledOff)
	if soft := d.Notice.Deadline; soft != nil && soft.Type == v1alpha1.DeadlineSoft {
		from = latest(from, d.Deadline.Time.Add(-time.Hour))
	}
	if due := b.calm(from, cordonWithin); due.Before(now) && (i.cordoned.IsZero() || i.cordoned.After(due)) && !i.uncordoned {
		b.run.fail("%s was to be cordoned by %s, and was at %s", instance, b.at(due), b.at(i.cordoned))
	}
	for _, uid := range b.sortedPods() {
		page := b.pods[uid]
		if page.instance != instance || isStaying(page.pod) || respectedHold(page.pod, d.DoNotDisrupt) {
			continue
		}
		grace := time.Duration(*page.pod.Spec.TerminationGracePeriodSeconds) * time.Second
		due := b.calm(latest(from, page.bound, d.Deadline.Time.Add(-modelMargin-grace)), askWithin)
		if due.Before(now) && (page.asked.IsZero() || page.asked.After(due)) {
			b.run.fail("pod %s on %s was to be asked to stop by %s, and was at %s: %s", page.pod.Name, instance, b.at(due), b.at(page.asked), said(in, uid))
		}
	}
}

func isStaying(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return pod.Status.Phase == corev1.PodSucceeded || (owner != nil && owner.Kind == "DaemonSet")
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
	if d.NotBefore.After(b.run.c.Now()) && it != nil && !it.due.IsZero() {
		return
	}
	b.run.fail("%s is still in work: phase %s, %s; pods %+v; decision %+v", in.Name, in.Status.Phase,
		meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionReady).Message, in.Status.PodsLeft, in.Status.Decision)
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

func (r *modelRun) lastPolicyChange() time.Time { return r.books.policyChanged }

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// said is what a record says of a pod.
func said(in *v1alpha1.Interruption, pod types.UID) string {
	for _, left := range in.Status.PodsLeft {
		if left.UID == pod {
			return left.Verdict + ": " + left.Reason
		}
	}
	return fmt.Sprintf("not listed; %s: %s", in.Status.Phase, in.Status.Decision.Message)
}
