package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// MaxPendingPods bounds status.drain.pendingPods; a kubelet's default limit is 110.
	MaxPendingPods = 300
	// VerdictRefused is the verdict on a pod whose eviction is due and failed: the API
	// server refused it, or did not answer.
	VerdictRefused = "Refused"
	// verdictLost is the verdict on a pod whose instance was gone before the pod left.
	verdictLost = "Lost"
	// EvictionCacheLag is how long a pod counts as evicted although the cache does not
	// show that. Then it is evicted again.
	EvictionCacheLag = 4 * time.Second
)

// EvictedUntil is until when a pod counts as evicted although the cache does not show
// that; zero: it was not evicted.
func EvictedUntil(d *v1beta1.DrainStatus, pod types.UID) time.Time {
	for _, left := range d.PendingPods {
		if left.UID == pod && left.EvictionTime != nil {
			return left.EvictionTime.Add(EvictionCacheLag)
		}
	}
	return time.Time{}
}

// settlePods counts the pods that were listed and no longer have to leave: they are
// gone, or have finished and are about to be.
func (u *Update) settlePods() {
	still := map[types.UID]bool{}
	for _, v := range u.pass.Pods.Plan.Verdicts {
		still[v.Pod.UID] = v.Step != drain.StepStays || (v.Pod.Status.Phase != corev1.PodSucceeded && v.Pod.Status.Phase != corev1.PodFailed)
	}
	var gone, lost []string
	for _, left := range record.Drain(&u.was).PendingPods {
		switch {
		case still[left.UID]:
		case left.State == verdictLost: // it was counted as lost already
		case leftInTime(left, u.pass.Decision.Deadline, u.now):
			if left.Returned { // its first one is counted
				continue
			}
			gone = append(gone, departure(left, u.now))
		default:
			lost = append(lost, podName(left))
		}
	}
	u.moved += len(gone)
	u.Drain().Pods.Moved += int32(len(gone)) //nolint:gosec // G115: the pods of one node
	u.recordNames(v1beta1.ReasonPodTerminated, "left", gone)
	u.recordLost(lost, "was still there when the deadline passed")
}

// leftInTime reports whether a pod that is gone left before the instance did: it was
// seen to be gone by then, or its grace had ended by then.
func leftInTime(left v1beta1.PendingPod, deadline *v1beta1.Deadline, now time.Time) bool {
	if deadline == nil || deadline.Type != v1beta1.DeadlineHard || !now.After(deadline.Time.Time) {
		return true
	}
	if left.EvictionTime == nil || left.GraceSeconds == nil {
		return false
	}
	end := left.EvictionTime.Add(time.Duration(*left.GraceSeconds) * time.Second)
	return !end.After(deadline.Time.Time)
}

// listPods lists the pods that have to leave, with what the plan says about them.
func (u *Update) listPods() {
	was := map[types.UID]v1beta1.PendingPod{}
	for _, left := range record.Drain(&u.was).PendingPods {
		was[left.UID] = left
	}
	var lost []string
	var held, list []v1beta1.PendingPod
	gone := u.pass.Decision.InstanceGone || (u.pass.Node == nil && u.pass.NodeName != "")
	for _, v := range u.pass.Pods.Plan.Left() {
		left, known := was[v.Pod.UID]
		if left.State == verdictLost && !gone { // its Node was deleted, and has registered again
			left.State, left.Reason = string(drain.StepLeaving), Clip(v.Reason) // entry corrects it, unless the cache is stale
			u.Drain().Pods.Lost--
		}
		left = u.entry(left, v)
		if gone {
			if left.State != verdictLost {
				lost = append(lost, podName(left))
			}
			left.State, left.Reason = verdictLost, "its instance went before it had left"
		}
		if v.Step == drain.StepWaits && (!known || was[v.Pod.UID].Reason != left.Reason) && !u.isReportedElsewhere(v) {
			held = append(held, left)
		}
		list = append(list, left)
	}
	u.recordLost(lost, "was still there when its instance went")
	u.recordEach(v1beta1.ReasonEvictionBlocked, held)
	u.Drain().PendingPods = list[:min(len(list), MaxPendingPods)]
}

// isReportedElsewhere reports whether another entry says what a pod waits for: the
// condition Ready names the gates, and the start of a successor has its own entry.
func (u *Update) isReportedElsewhere(v drain.Verdict) bool {
	if v.Pod.Labels[v1beta1.LabelSurged] != "" {
		return true
	}
	return slices.ContainsFunc(u.pass.Pods.Gates, func(g drain.Gate) bool { return strings.Contains(v.Reason, g.Why) })
}

// entry updates the entry of a pod with what the plan says about it now.
func (u *Update) entry(left v1beta1.PendingPod, v drain.Verdict) v1beta1.PendingPod {
	pod := v.Pod
	left.Namespace, left.Name, left.UID, left.Returned = pod.Namespace, pod.Name, pod.UID, v.Returned
	switch {
	case left.State == verdictLost,
		left.State == VerdictRefused && (v.Step == drain.StepEvict || v.Step == drain.StepDelete),
		EvictedUntil(record.Drain(&u.was), pod.UID).After(u.now) && v.Step != drain.StepLeaving: // the cache is stale
	default:
		left.State, left.Reason = string(v.Step), Clip(v.Reason)
		if pod.DeletionTimestamp == nil { // its eviction was listed, and the process stopped before the request
			left.EvictionTime, left.GraceSeconds = nil, nil
		}
	}
	if !v.LastCall.IsZero() {
		at := metav1.NewTime(v.LastCall)
		left.LastCall = &at
	}
	if asked, grace, ok := evictionTime(pod); ok && !isSame(left, asked, grace) {
		left.EvictionTime, left.GraceSeconds = &asked, &grace
	}
	return left
}

// isSame reports whether an entry has the eviction time of a pod already, to the second
// by which the two clocks may differ. A correction would cost a write for each node.
func isSame(left v1beta1.PendingPod, asked metav1.Time, grace int64) bool {
	return left.EvictionTime != nil && left.GraceSeconds != nil && *left.GraceSeconds == grace &&
		left.EvictionTime.Sub(asked.Time).Abs() <= time.Second
}

// evictionTime reads when a terminating pod was evicted and its grace: the API server
// sets the deletion timestamp to the end of the grace.
func evictionTime(pod *corev1.Pod) (metav1.Time, int64, bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return metav1.Time{}, 0, false
	}
	grace := *pod.DeletionGracePeriodSeconds
	return metav1.NewTime(pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)), grace, true
}

// recordLost counts pods that are lost.
func (u *Update) recordLost(names []string, how string) {
	u.lost += len(names)
	u.Drain().Pods.Lost += int32(len(names)) //nolint:gosec // G115: the pods of one node
	u.recordNames(v1beta1.ReasonPodLost, how+":", names)
}

// CountPods makes the counts match the list.
func (u *Update) CountPods() {
	pods := &u.Drain().Pods
	pods.Leaving, pods.Waiting = 0, 0
	for _, left := range u.Drain().PendingPods {
		switch {
		case left.State == verdictLost, left.Returned:
		case left.State == string(drain.StepLeaving):
			pods.Leaving++
		default:
			pods.Waiting++
		}
	}
	pods.Total = pods.Moved + pods.Lost + pods.Leaving + pods.Waiting
}

// podEvent is an event about a pod that its entry shows already.
type podEvent struct {
	reason string
	left   v1beta1.PendingPod
	what   string
}

// pendingPods are the entries of the pods, by UID.
func (u *Update) pendingPods() map[types.UID]*v1beta1.PendingPod {
	byUID := map[types.UID]*v1beta1.PendingPod{}
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
		// A refused pod is left out unless a budget is overridden: an override is always written first.
		if v.Step == drain.StepSurge || left == nil || left.State == verdictLost || left.State == VerdictRefused && v.Overrides == "" {
			continue
		}
		u.markedEvicted[left.UID] = *left
		u.markEvicted(left, v)
	}
	return len(u.markedEvicted) > 0
}

func (u *Update) markEvicted(left *v1beta1.PendingPod, v drain.Verdict) {
	at := metav1.NewTime(u.now)
	left.EvictionTime, left.GraceSeconds = &at, cmp.Or(v.GraceSeconds, v.Pod.Spec.TerminationGracePeriodSeconds)
	left.State, left.Reason = string(drain.StepLeaving), Clip(v.Reason)
	u.podEvents = append(u.podEvents, podEvent{evictionReason(v), *left, v.Reason})
}

func evictionReason(v drain.Verdict) string {
	switch {
	case v.Overrides != "":
		return v1beta1.ReasonProtectionOverridden
	case v.Step == drain.StepDelete:
		return v1beta1.ReasonDeleted
	}
	return v1beta1.ReasonEvicted
}

// applyEvictions notes which evictions succeeded and which failed.
func (u *Update) applyEvictions(o Outcome) {
	pods := u.pendingPods()
	for _, v := range o.Evicted {
		left := pods[v.Pod.UID]
		if _, marked := u.markedEvicted[v.Pod.UID]; marked || left == nil || left.State == verdictLost {
			continue
		}
		u.markedEvicted[left.UID] = *left
		switch v.Step {
		case drain.StepSurge:
			left.State, left.Reason = string(drain.StepSurge), Clip(v.Reason)
			u.podEvents = append(u.podEvents, podEvent{v1beta1.ReasonSurged, *left, v.Reason})
		default:
			u.markEvicted(left, v)
		}
	}
	for pod, why := range o.NotEvicted {
		left := pods[pod]
		if left == nil || left.State == verdictLost {
			continue
		}
		u.revertEvicted(left)
		if left.State != VerdictRefused || left.Reason != Clip(why) {
			u.material = true // a later pass does not find it again
		}
		left.State, left.Reason = VerdictRefused, Clip(why)
	}
}

// flushPodEvents adds the events about pods to the timeline.
func (u *Update) flushPodEvents() {
	for _, e := range u.podEvents {
		u.recordPod(e.reason, e.left, e.what)
	}
	u.podEvents = nil
}
