package interruption

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// checkRequest checks a request before it is carried out, and returns a check of its answer.
func (b *bookkeeping) checkRequest(q *model.Request) func(error) {
	b.writes++
	switch {
	case q.Key.Kind == "Pod" && (q.Verb == "delete" || q.Verb == "evict"):
		return b.checkPodRequest(q)
	case q.Key.Kind == "Pod" && q.Verb == "patch" && q.Sub == "":
		return b.checkSurgeRequest(q)
	case q.Key.Kind == "Pod" && q.Verb == "patch" && q.Sub == "status":
		return func(error) {} // checkDelete reads its effect
	case q.Verb == "may-terminate":
		return func(error) {} // it changes nothing
	case q.Verb == "terminate":
		return b.checkTermination(q)
	case q.Verb == "hook":
		return func(error) {} // the fake runner checks it
	case b.run.group != nil && q.Key.Kind == "Member":
		return func(error) {} // modelGroup checks it
	case b.run.group != nil && q.Key.Kind == "Node" && q.Verb == "delete":
		return b.run.group.checkNodeRequest(q)
	case q.Key.Kind == "Node":
		return b.checkNodeRequest(q)
	case q.Key.Kind == "Interruption":
		return b.checkRecordWrites(q)
	}
	b.run.fail("%s: the product must not send this", q)
	return func(error) {}
}

// checkPodRequest checks a request to stop a pod.
func (b *bookkeeping) checkPodRequest(q *model.Request) func(error) {
	pod, _ := b.run.Get(q.Key).(*corev1.Pod)
	if q.Stop.UID == nil {
		b.run.fail("%s: not tied to a UID", q)
		return func(error) {}
	}
	if pod == nil || pod.UID != *q.Stop.UID {
		return func(error) {}
	}
	page := b.pods[pod.UID]
	if !b.run.people {
		b.checkMayStop(q, pod, page)
		b.checkLastCall(q, pod, page)
	} else {
		b.checkLeave(q, pod, page)
	}
	if !b.run.refused(pod.Spec.NodeName, time.Time{}, writeRecord) {
		b.checkListed(q, pod, page)
		b.checkNotTwice(q, pod)
	}
	was := page.asked
	return func(err error) {
		if err == nil && was.IsZero() {
			page.askedByProduct = true
		}
	}
}

// checkListed checks that the record lists a pod before it is evicted: after a crash it could
// not be counted otherwise.
func (b *bookkeeping) checkListed(q *model.Request, pod *corev1.Pod, page *podHistory) {
	in := b.recordOf(page.instance)
	if in == nil || b.inst(in.Name).isUnwritten(b.run.c.Now()) && b.mayOverride(in, pod) || b.run.c.Now().Sub(b.inst(page.instance).changed) < behind {
		return
	}
	if !slices.ContainsFunc(record.Pending(record.Drain(&in.Status)), func(left v1beta1.PodStatus) bool { return left.UID == *q.Stop.UID }) && page.asked.IsZero() {
		b.run.fail("%s: the record does not list it", q)
	}
}

// checkSurgeRequest checks that a surge, or its reversal, changes only its own labels and annotations of
// a pod.
func (b *bookkeeping) checkSurgeRequest(q *model.Request) func(error) {
	was, _ := b.run.Get(q.Key).(*corev1.Pod)
	return func(err error) {
		is, _ := b.run.Get(q.Key).(*corev1.Pod)
		if err != nil || was == nil || is == nil {
			return
		}
		if _, now := is.Labels[v1beta1.LabelSurged]; now {
			b.surges++
			if page := b.pods[is.UID]; page != nil {
				page.surged = b.run.c.Now()
			}
			if !b.run.people {
				b.checkMayStop(q, was, b.pods[was.UID])
			}
		}
		if diff := cmp.Diff(withoutSurge(was), withoutSurge(is), cmpopts.EquateEmpty()); diff != "" {
			b.run.fail("%s changes more than it may (-was +is):\n%s", q, diff)
		}
	}
}

// withoutSurge is a pod without what a surge adds or removes.
func withoutSurge(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.ResourceVersion, p.Generation = "", 0
	delete(p.Labels, v1beta1.LabelSurged)
	delete(p.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(p.Annotations, v1beta1.AnnotationSurgeOrigin)
	return p
}

// isHeld reports whether an annotation holds a pod without an end.
func isHeld(pod *corev1.Pod) bool {
	return pod.Annotations[v1beta1.AnnotationDoNotDisrupt] == "true" || pod.Annotations["karpenter.sh/do-not-disrupt"] == "true" ||
		pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
}

// checkMayStop checks that the pod's node is interrupted and that policy says to drain it.
func (b *bookkeeping) checkMayStop(q *model.Request, pod *corev1.Pod, page *podHistory) {
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
		b.run.fail("%s: on %s, which has no record with a valid notice", q, page.instance)
	case ok && !d.drains() && !lately:
		b.run.fail("%s: on %s, which must not be drained: %s", q, page.instance, d.notice.ID)
	case ok && d.awaits && !lately && case_{record: b.recordOf(page.instance)}.begun().IsZero():
		b.run.fail("%s: it is not approved", q)
	case ok && d.drains() && i.cordoned.IsZero() && !lately && !d.instanceGone:
		// A person may have just uncordoned it. The Node of that name may be another instance's by now.
		if n := b.run.Node(i.node); n != nil && instanceOf(n) == page.instance && n.Annotations[v1beta1.AnnotationOriginalState] == "" {
			b.run.fail("%s: node %s is not cordoned", q, i.node)
		}
	}
}

// checkNotTwice checks that no pod is asked to stop twice, except with a shorter grace.
func (b *bookkeeping) checkNotTwice(q *model.Request, pod *corev1.Pod) {
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
	// If both the watch and the record are stale the request may be repeated: the API server
	// then does nothing.
	if seenAsked, ok := l.seenAsked[pod.UID]; ok && seenAsked.at.Before(began) && began.Sub(seenAsked.asked) < status.EvictionCacheLag {
		b.run.fail("%s: its record said so at %s", q, b.at(seenAsked.at))
	}
	b.repeats++
}

// checkLastCall checks that what holds a pod is overridden only at its last call before a hard
// deadline.
func (b *bookkeeping) checkLastCall(q *model.Request, pod *corev1.Pod, page *podHistory) {
	d, ok := b.decision(page.instance)
	now, i := b.run.c.Now(), b.inst(page.instance)
	if !ok || d.instanceGone || !d.drains() || now.Sub(i.changed) < behind || now.Sub(b.run.lastPolicyChange()) < behind {
		return
	}
	lastCall := time.Time{}
	if firm(d.deadline) {
		lastCall = d.deadline.Time.Add(-modelMargin - time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second)
	}
	if held := isHeld(pod) && d.worth() != v1beta1.DoNotDisruptIgnore && pod.DeletionTimestamp == nil; held {
		// If a budget allows one disruption at a time, the first pods leave before their last
		// call.
		early := now.Before(lastCall) && len(b.run.BudgetsOf(pod)) == 0
		if d.worth() == v1beta1.DoNotDisruptRespect || lastCall.IsZero() || early {
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
		if !i.isUnwritten(now) {
			i.overrides = append(i.overrides, pod.Namespace+"/"+pod.Name)
		}
	}
}

// checkTermination checks that an instance is terminated only if policy says so, once its pods
// have left, and at most once a minute.
func (b *bookkeeping) checkTermination(q *model.Request) func(error) {
	id := q.Key.Name
	d, ok := b.decision(id)
	i, now := b.inst(id), b.run.c.Now()
	if g := b.run.group; b.run.people {
		b.checkTerminate(q)
	} else if g != nil && g.takenOut(id) {
		g.checkTermination(q, id)
	} else if !ok || d.action != v1beta1.ActionTerminate {
		if now.Sub(i.changed) > behind && now.Sub(b.run.lastPolicyChange()) > behind {
			b.run.fail("%s: policy does not say so: %s", q, d.notice.ID)
		}
	}
	if !i.terminated.IsZero() && now.Sub(i.terminated) < time.Minute-behind {
		b.run.fail("%s: it was asked %s ago", q, now.Sub(i.terminated))
	}
	if i.ended {
		b.run.fail("%s: EC2 has accepted that before", q)
	}
	return func(error) {}
}

// checkNodeRequest checks that only nodes that a record is about, or that have the mark, are changed.
func (b *bookkeeping) checkNodeRequest(q *model.Request) func(error) {
	n := b.run.Node(q.Key.Name)
	if n == nil {
		return func(error) {}
	}
	i := b.inst(instanceOf(n))
	_, marked := n.Annotations[v1beta1.AnnotationOriginalState]
	if len(i.accepted) == 0 && !marked {
		b.run.fail("%s: no Interruption is about it", q)
	}
	interrupted := mutate.IsMarked(n, mutate.MarkInterrupted)
	lately := b.run.c.Now().Sub(i.changed) < behind || b.run.c.Now().Sub(b.run.lastPolicyChange()) < behind
	return func(err error) {
		was := n
		is := b.run.Node(q.Key.Name)
		if err != nil || is == nil {
			return
		}
		if b.run.people {
			b.checkMarks(q, was)
			return
		}
		if !interrupted && mutate.IsMarked(is, mutate.MarkInterrupted) && !marked && !lately {
			b.checkMayBegin(q, instanceOf(n))
		}
		if _, still := is.Annotations[v1beta1.AnnotationOriginalState]; marked && !still {
			b.putBacks++
			if interrupted && !lately && i.deletedAt.IsZero() {
				b.checkRestored(was)
			}
		} else if !marked && still {
			b.marks++
		}
	}
}

// checkMayBegin checks that no drain begins without approval or beyond the budget.
func (b *bookkeeping) checkMayBegin(q *model.Request, instance string) {
	if why := b.budgetViolation(instance); why != "" {
		b.run.fail("%s: %s", q, why)
	}
	switch d, ok := b.decision(instance); {
	case !ok:
	case d.awaits:
		b.run.fail("%s: it is not approved", q)
	case d.notBefore.After(b.run.c.Now()):
		b.run.fail("%s: it had to begin at %s", q, b.at(d.notBefore))
	}
}

// checkRecordWrites checks the number of writes.
func (b *bookkeeping) checkRecordWrites(q *model.Request) func(error) {
	i := b.inst(q.Key.Name)
	if q.Sub != "status" {
		return func(error) {}
	}
	b.noteContinued(q.Key.Name)
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
	if b.run.people {
		pods += 40 // over days
	}
	if b.run.windows > 0 {
		pods += int(b.run.c.Now().Sub(modelEpoch)/b.run.windows) / 12
	}
	if most := 40 + 12*pods + 12*len(i.accepted) + 2*len(b.troubles) + 3*i.refusedPods; i.writes > most {
		b.run.fail("%s: write %d, with %d pods and %d notices", q, i.writes, pods, len(i.accepted))
	}
	return func(err error) { b.noteUnwritten(q, err) }
}

// noteUnwritten remembers whether the last write of a record by the controller that evicts failed.
func (b *bookkeeping) noteUnwritten(q *model.Request, err error) {
	if q.Key.Kind != "Interruption" || q.Sub != "status" || !strings.Contains(q.Actor, " record ") {
		return
	}
	i := b.inst(q.Key.Name)
	if i.unwritten = (time.Time{}); err != nil {
		i.unwritten = b.run.c.Now()
	}
}

// isUnwritten reports whether that write failed a moment ago. A pod that would lose grace if it waited for
// the next write may leave then, although the record does not show it.
func (i *instanceHistory) isUnwritten(now time.Time) bool {
	return !i.unwritten.IsZero() && now.Sub(i.unwritten) < behind/5
}
