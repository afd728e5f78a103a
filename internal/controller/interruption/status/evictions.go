package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// podEvent is an event about a pod that its entry shows already.
type podEvent struct {
	reason string
	left   v1alpha1.PendingPod
	what   string
}

// pendingPods are the entries of the pods, by UID.
func (u *Update) pendingPods() map[types.UID]*v1alpha1.PendingPod {
	byUID := map[types.UID]*v1alpha1.PendingPod{}
	for i := range u.Drain().PendingPods {
		byUID[u.Drain().PendingPods[i].UID] = &u.Drain().PendingPods[i]
	}
	return byUID
}

// MarkEvicted marks pods as evicted before the requests are sent, and reports whether
// that has to be written first. It leaves out pods whose last request failed: to mark
// and to revert them would be two writes for each try.
func (u *Update) MarkEvicted(verdicts []drain.Verdict) bool {
	pods := u.pendingPods()
	for _, v := range verdicts {
		left := pods[v.Pod.UID]
		if v.Step == drain.StepSurge || left == nil || left.Verdict == verdictLost {
			continue
		}
		if left.Verdict == VerdictRefused && v.Overrides == "" { // an override is always written first
			continue
		}
		u.keepEntry(*left)
		u.markEvicted(left, v)
	}
	return len(u.markedEvicted) > 0
}

// keepEntry keeps the entry of a pod as it was before it was marked.
func (u *Update) keepEntry(was v1alpha1.PendingPod) {
	if u.markedEvicted == nil {
		u.markedEvicted = map[types.UID]v1alpha1.PendingPod{}
	}
	u.markedEvicted[was.UID] = was
}

func (u *Update) markEvicted(left *v1alpha1.PendingPod, v drain.Verdict) {
	at := metav1.NewTime(u.now)
	left.AskedTime, left.GraceSeconds = &at, v.GraceSeconds
	if left.GraceSeconds == nil {
		left.GraceSeconds = v.Pod.Spec.TerminationGracePeriodSeconds
	}
	left.Verdict, left.Reason = string(drain.StepLeaving), Clip(v.Reason)
	u.podEvents = append(u.podEvents, podEvent{evictionReason(v), *left, v.Reason})
}

func evictionReason(v drain.Verdict) string {
	switch {
	case v.Overrides != "":
		return v1alpha1.ReasonOverridden
	case v.Step == drain.StepDelete:
		return v1alpha1.ReasonDeleted
	}
	return v1alpha1.ReasonEvicted
}

// RevertEvicted reverts all pods that were marked as evicted.
func (u *Update) RevertEvicted() {
	for _, left := range u.pendingPods() {
		u.revertEvicted(left)
	}
	u.podEvents = nil
}

// revertEvicted reverts a pod that was marked as evicted, and removes its events.
func (u *Update) revertEvicted(left *v1alpha1.PendingPod) {
	was, marked := u.markedEvicted[left.UID]
	if !marked {
		return
	}
	pod := left.UID
	*left = was
	delete(u.markedEvicted, pod)
	isEviction := func(e event) bool {
		return e.pod != nil && e.pod.UID == pod && slices.Contains([]string{v1alpha1.ReasonOverridden, v1alpha1.ReasonDeleted, v1alpha1.ReasonEvicted}, e.Reason)
	}
	u.writtenEvents, u.events, u.timelineDirty = slices.DeleteFunc(u.writtenEvents, isEviction), slices.DeleteFunc(u.events, isEviction), true
}

// applyEvictions notes which evictions succeeded and which failed.
func (u *Update) applyEvictions(o Outcome) {
	pods := u.pendingPods()
	for _, v := range o.Evicted {
		left := pods[v.Pod.UID]
		if _, marked := u.markedEvicted[v.Pod.UID]; marked || left == nil || left.Verdict == verdictLost {
			continue
		}
		u.keepEntry(*left)
		switch v.Step {
		case drain.StepSurge:
			left.Verdict, left.Reason = string(drain.StepSurge), Clip(v.Reason)
			u.podEvents = append(u.podEvents, podEvent{v1alpha1.ReasonSurged, *left, v.Reason})
		default:
			u.markEvicted(left, v)
		}
	}
	for pod, why := range o.NotEvicted {
		left := pods[pod]
		if left == nil || left.Verdict == verdictLost {
			continue
		}
		u.revertEvicted(left)
		if left.Verdict != VerdictRefused || left.Reason != Clip(why) {
			u.material = true // a later pass does not find it again
		}
		left.Verdict, left.Reason = VerdictRefused, Clip(why)
	}
}

// flushPodEvents adds the events about pods to the timeline.
func (u *Update) flushPodEvents() {
	for _, e := range u.podEvents {
		u.recordPod(e.reason, e.left, e.what)
	}
	u.podEvents = nil
}
