package interruption

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// asks looks at a request that is about to be carried out, and returns what is
// to look at its answer.
func (b *books) asks(q *model.Request) func(error) {
	b.writes++
	switch {
	case q.Key.Kind == "Pod" && (q.Verb == "delete" || q.Verb == "evict"):
		return b.asksPod(q)
	case q.Key.Kind == "Pod" && q.Verb == "patch":
		return b.asksSurge(q)
	case q.Verb == "may-terminate":
		return func(error) {} // it changes nothing
	case q.Verb == "terminate":
		return b.asksTermination(q)
	case b.run.group != nil && q.Key.Kind == "Member":
		return func(error) {} // the group looks at it itself
	case b.run.group != nil && q.Key.Kind == "Node" && q.Verb == "delete":
		return b.run.group.asksNode(q)
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
	b.writtenDown(q, page)
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

// writtenDown: a pod is listed in the record before it is asked, or nobody could
// account for it after a crash.
func (b *books) writtenDown(q *model.Request, page *podPage) {
	in := b.recordOf(page.instance)
	if in == nil || b.run.c.Now().Sub(b.inst(page.instance).changed) < behind {
		return
	}
	if !slices.ContainsFunc(record.Drain(&in.Status).PendingPods, func(left v1alpha1.PendingPod) bool { return left.UID == *q.Stop.UID }) && page.asked.IsZero() {
		b.run.fail("%s: it is not written down", q)
	}
}

// asksSurge: what a surge, or its undoing, changes of a pod are its own marks.
func (b *books) asksSurge(q *model.Request) func(error) {
	was, _ := b.run.Get(q.Key).(*corev1.Pod)
	return func(err error) {
		is, _ := b.run.Get(q.Key).(*corev1.Pod)
		if err != nil || was == nil || is == nil {
			return
		}
		if _, now := is.Labels[v1alpha1.LabelSurged]; now {
			b.surges++
			b.mayStop(q, was, b.pods[was.UID])
		}
		if diff := cmp.Diff(withoutSurge(was), withoutSurge(is), cmpopts.EquateEmpty()); diff != "" {
			b.run.fail("%s changes more than it may (-was +is):\n%s", q, diff)
		}
	}
}

// withoutSurge is a pod without what a surge adds or takes off.
func withoutSurge(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.ResourceVersion, p.Generation = "", 0
	delete(p.Labels, v1alpha1.LabelSurged)
	delete(p.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(p.Annotations, v1alpha1.AnnotationSurged)
	return p
}

// isHeld reports whether an annotation holds a pod for good.
func isHeld(pod *corev1.Pod) bool {
	return pod.Annotations[v1alpha1.AnnotationDoNotDisrupt] == "true" || pod.Annotations["karpenter.sh/do-not-disrupt"] == "true" ||
		pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
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
	case ok && !d.drains() && !lately:
		b.run.fail("%s: on %s, which is not to be drained: %s", q, page.instance, d.notice.ID)
	case ok && d.awaits && !lately && case_{record: b.recordOf(page.instance)}.begun().IsZero():
		b.run.fail("%s: nobody has approved", q)
	case ok && d.drains() && i.cordoned.IsZero() && b.run.Node(i.node) != nil && !lately && !d.instanceGone:
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
	if told, ok := l.told[pod.UID]; ok && told.at.Before(began) && began.Sub(told.asked) < status.EvictionCacheLag {
		b.run.fail("%s: its record said so at %s", q, b.at(told.at))
	}
	b.repeats++
}

// lastCall: what holds a pod is overridden at last call before a hard deadline
// only.
func (b *books) lastCall(q *model.Request, pod *corev1.Pod, page *podPage) {
	d, ok := b.decision(page.instance)
	now, i := b.run.c.Now(), b.inst(page.instance)
	if !ok || d.instanceGone || !d.drains() || now.Sub(i.changed) < behind || now.Sub(b.run.lastPolicyChange()) < behind {
		return
	}
	lastCall := time.Time{}
	if firm(d.deadline) {
		lastCall = d.deadline.Time.Add(-modelMargin - time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second)
	}
	if held := isHeld(pod) && d.worth() != v1alpha1.DoNotDisruptIgnore && pod.DeletionTimestamp == nil; held {
		// Where a budget lets one go at a time, the first leave before their last call.
		early := now.Before(lastCall) && len(b.run.BudgetsOf(pod)) == 0
		if d.worth() == v1alpha1.DoNotDisruptRespect || lastCall.IsZero() || early {
			b.run.fail("%s: do-not-disrupt holds it (%s); last call %s", q, d.worth(), b.at(lastCall))
		}
	}
	shortens := q.Stop.Grace != nil && pod.DeletionTimestamp != nil && *q.Stop.Grace < *pod.DeletionGracePeriodSeconds
	if q.Verb != "delete" || (pod.DeletionTimestamp != nil && (!shortens || !b.run.knowsLeaving(pod))) {
		return
	}
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if pod.DeletionTimestamp != nil {
		grace = 2 * time.Second
	}
	if !firm(d.deadline) || now.Before(d.deadline.Time.Add(-modelMargin-grace)) {
		b.run.fail("%s: deleted before its last call: deadline %v", q, d.deadline)
	}
	n := b.run.Node(pod.Spec.NodeName) // another instance may have a node of that name by now
	if _, refused := b.run.Allows(pod); refused != nil && n != nil && instanceOf(n) == page.instance {
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
	if g := b.run.group; g != nil && g.takenOut(id) {
		g.mayEnd(q, id)
	} else if !ok || d.action != v1alpha1.ActionTerminate {
		if now.Sub(i.changed) > behind && now.Sub(b.run.lastPolicyChange()) > behind {
			b.run.fail("%s: policy does not say so: %s", q, d.notice.ID)
		}
	}
	if !i.terminated.IsZero() && now.Sub(i.terminated) < time.Minute-behind {
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
		b.run.fail("%s: no Interruption is about it", q)
	}
	doomed := action.IsMarked(n, action.MarkInterrupted)
	lately := b.run.c.Now().Sub(i.changed) < behind || b.run.c.Now().Sub(b.run.lastPolicyChange()) < behind
	return func(err error) {
		was := n
		is := b.run.Node(q.Key.Name)
		if err != nil || is == nil {
			return
		}
		if !doomed && action.IsMarked(is, action.MarkInterrupted) && !marked && !lately {
			b.mayBegin(q, instanceOf(n))
		}
		if _, still := is.Annotations[v1alpha1.AnnotationBefore]; marked && !still {
			b.putBacks++
			if doomed && !lately && i.calledOff.IsZero() {
				b.restores(was)
			}
		} else if !marked && still {
			b.marks++
		}
	}
}

// mayBegin: nothing begins that nobody has approved, or that the budget has no
// room for.
func (b *books) mayBegin(q *model.Request, instance string) {
	if why := b.budget(instance); why != "" {
		b.run.fail("%s: %s", q, why)
	}
	switch d, ok := b.decision(instance); {
	case !ok:
	case d.awaits:
		b.run.fail("%s: nobody has approved", q)
	case d.notBefore.After(b.run.c.Now()):
		b.run.fail("%s: it was to begin at %s", q, b.at(d.notBefore))
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
	if g := b.run.group; g != nil {
		i.writes -= g.writes(q.Key.Name)
	}
	if most := 40 + 12*pods + 12*len(i.accepted) + 2*len(b.troubles); i.writes > most {
		b.run.fail("%s: the %d. time, with %d pods and %d notices", q, i.writes, pods, len(i.accepted))
	}
	return func(error) {}
}
