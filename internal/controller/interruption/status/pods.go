package status

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// MaxPods bounds status.drain.pods; a kubelet's default limit is 110.
	MaxPods = 300
	// EvictionCacheLag is how long a pod counts as evicted without the cache showing it; then it is evicted again.
	EvictionCacheLag = 4 * time.Second
)

// EvictedUntil is until when a pod counts as evicted although the cache does not show
// that; zero: it was not evicted.
func EvictedUntil(d *v1beta1.DrainStatus, pod types.UID) time.Time {
	for _, left := range record.Pending(d) {
		if left.UID == pod && left.EvictionTime != nil {
			return left.EvictionTime.Add(EvictionCacheLag)
		}
	}
	return time.Time{}
}

// settlePods counts the pods that were listed and no longer have to leave: they are
// gone, or have finished and are about to be. They stay listed.
func (u *Update) settlePods() {
	still := map[types.UID]bool{}
	for _, v := range u.pass.Pods.Plan.Verdicts {
		still[v.Pod.UID] = v.Step != drain.StepStays || (v.Pod.Status.Phase != corev1.PodSucceeded && v.Pod.Status.Phase != corev1.PodFailed)
	}
	var gone, lost []string
	for _, left := range record.Drain(&u.was).Pods {
		switch {
		case !record.IsPending(&left):
			u.departed = append(u.departed, left)
			continue
		case still[left.UID]:
			continue
		case left.State == v1beta1.PodLost: // it was counted as lost already
		case leftInTime(left, u.pass.Decision.Deadline, u.now):
			if left.State, left.Reason = v1beta1.PodLeft, v1beta1.PodReasonDeparted; !left.Returned { // else its first one is counted
				gone = append(gone, departure(left, cmp.Or(u.pass.Pods.GoneAt(left.UID), u.now)))
			}
		default:
			left.State, left.Reason, left.Message = v1beta1.PodLost, v1beta1.PodReasonDeadlinePassed, "it was still there when the deadline passed"
			lost = append(lost, podName(left))
		}
		u.departed = append(u.departed, u.departs(left))
	}
	u.moved += len(gone)
	u.Drain().PodCounts.Moved += int32(len(gone)) //nolint:gosec // G115: the pods of one node
	u.recordNames(v1beta1.ReasonPodTerminated, "left", gone)
	u.recordLost(lost, "was still there when the deadline passed")
}

// departs notes when a pod was gone. It is unknown if the pod went while no controller ran.
func (u *Update) departs(left v1beta1.PodStatus) v1beta1.PodStatus {
	left.LastCallTime = nil
	at := u.pass.Pods.GoneAt(left.UID)
	if at.IsZero() && left.State == v1beta1.PodLost {
		at = u.now
	}
	if at.IsZero() {
		left.Reason, left.Message = v1beta1.PodReasonDepartureUnseen, "it left while no controller ran"
		return left
	}
	if left.State == v1beta1.PodLeft && left.EvictionTime != nil {
		left.Message = fmt.Sprintf("it was gone %s after it was asked to stop", at.Sub(left.EvictionTime.Time).Round(time.Second))
	}
	left.DepartureTime = &metav1.Time{Time: at}
	return left
}

// leftInTime reports whether a pod that is gone left before the instance did: it was
// seen to be gone by then, or its grace had ended by then.
func leftInTime(left v1beta1.PodStatus, deadline *v1beta1.Deadline, now time.Time) bool {
	if deadline == nil || deadline.Type != v1beta1.DeadlineHard || !now.After(deadline.Time.Time) {
		return true
	}
	if left.EvictionTime == nil || left.GraceSeconds == nil {
		return false
	}
	return !left.EvictionTime.Add(time.Duration(*left.GraceSeconds) * time.Second).After(deadline.Time.Time)
}

// listPods lists the pods that have to leave, with what the plan says about them.
func (u *Update) listPods() {
	was := map[types.UID]v1beta1.PodStatus{}
	for _, left := range record.Pending(record.Drain(&u.was)) {
		was[left.UID] = left
	}
	var lost []string
	var held, list []v1beta1.PodStatus
	gone := u.pass.Decision.InstanceGone || (u.pass.Node == nil && u.pass.NodeName != "")
	for _, v := range u.pass.Pods.Plan.Left() {
		left := was[v.Pod.UID]
		if left.State == v1beta1.PodLost && !gone { // its Node was deleted, and has registered again
			left.State, left.Reason, left.Message = v1beta1.PodLeaving, v.Cause, Clip(v.Reason) // entry corrects it, unless the cache is stale
			u.Drain().PodCounts.Lost--
		}
		left = u.entry(left, v)
		if gone {
			if left.State != v1beta1.PodLost {
				lost = append(lost, podName(left))
			}
			left.State, left.Reason, left.Message = v1beta1.PodLost, v1beta1.PodReasonInstanceGone, "its instance went before it had left"
		}
		// The condition Ready names the gates, and the start of a successor has an entry of its own.
		reported := v.Cause == v1beta1.PodReasonGate || v.Pod.Labels[v1beta1.LabelSurged] != ""
		if v.Step == drain.StepWaits && !reported && was[v.Pod.UID].Message != left.Message {
			held = append(held, left)
		}
		list = append(list, left)
	}
	u.recordLost(lost, "was still there when its instance went")
	u.recordEach(v1beta1.ReasonEvictionBlocked, held)
	list = append(list, departedOnly(u.departed, list)...)
	u.Drain().Pods = list[:min(len(list), MaxPods)]
}

// entry updates the entry of a pod with what the plan says about it now.
func (u *Update) entry(left v1beta1.PodStatus, v drain.Verdict) v1beta1.PodStatus {
	pod := v.Pod
	left.Namespace, left.Name, left.UID, left.Returned = pod.Namespace, pod.Name, pod.UID, v.Returned
	left.SpecGraceSeconds = pod.Spec.TerminationGracePeriodSeconds
	left.Owner, left.SurgeTime = drain.OwnerOf(pod)
	switch {
	case left.State == v1beta1.PodLost,
		left.State == v1beta1.PodRefused && (v.Step == drain.StepEvict || v.Step == drain.StepDelete),
		EvictedUntil(record.Drain(&u.was), pod.UID).After(u.now) && v.Step != drain.StepLeaving: // the cache is stale
	default:
		left.State, left.Reason, left.Message = cmp.Or(states[v.Step], v1beta1.PodWaiting), v.Cause, Clip(v.Reason)
		if pod.DeletionTimestamp == nil { // its eviction was listed, and the process stopped before the request
			left.EvictionTime, left.GraceSeconds, left.Overridden = nil, nil, ""
		}
	}
	if v.Step != drain.StepLeaving { // a pod that leaves keeps its last call; the deadline of another may go
		left.LastCallTime = instant(v.LastCall)
	}
	asked, grace, ok := evictionTime(pod) // the two clocks may differ by a second, and a correction would cost a write for each node
	same := left.EvictionTime != nil && left.GraceSeconds != nil && *left.GraceSeconds == grace && left.EvictionTime.Sub(asked.Time).Abs() <= time.Second
	if ok && !same {
		left.EvictionTime, left.GraceSeconds = &asked, &grace
	}
	return left
}

// states are those of pods that must leave; pods with another step wait.
var states = map[drain.Step]v1beta1.PodState{
	drain.StepSurge: v1beta1.PodSurging, drain.StepEvict: v1beta1.PodEvicting, drain.StepDelete: v1beta1.PodEvicting, drain.StepLeaving: v1beta1.PodLeaving,
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
	u.Drain().PodCounts.Lost += int32(len(names)) //nolint:gosec // G115: the pods of one node
	u.recordNames(v1beta1.ReasonPodLost, how+":", names)
}

// CountPods makes the counts match the list.
func (u *Update) CountPods() {
	pods := &u.Drain().PodCounts
	pods.Leaving, pods.Waiting = 0, 0
	for _, left := range record.Pending(u.Drain()) {
		switch {
		case left.State == v1beta1.PodLost, left.Returned:
		case left.State == v1beta1.PodLeaving:
			pods.Leaving++
		default:
			pods.Waiting++
		}
	}
	pods.Total = pods.Moved + pods.Lost + pods.Leaving + pods.Waiting
}

// podEvent is an event about a pod that its entry shows already.
type podEvent struct {
	left         v1beta1.PodStatus
	reason, what string
}

// pendingPods are the entries of the pods, by UID.
func (u *Update) pendingPods() map[types.UID]*v1beta1.PodStatus {
	byUID := map[types.UID]*v1beta1.PodStatus{}
	for i, left := range u.Drain().Pods {
		if record.IsPending(&left) {
			byUID[left.UID] = &u.Drain().Pods[i]
		}
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
		if v.Step == drain.StepSurge || left == nil || left.State == v1beta1.PodLost || left.State == v1beta1.PodRefused && v.Overrides == "" {
			continue
		}
		u.markedEvicted[left.UID] = *left
		u.markEvicted(left, v)
	}
	return len(u.markedEvicted) > 0
}

func (u *Update) markEvicted(left *v1beta1.PodStatus, v drain.Verdict) {
	at := metav1.NewTime(u.now)
	left.EvictionTime, left.GraceSeconds = &at, cmp.Or(v.GraceSeconds, v.Pod.Spec.TerminationGracePeriodSeconds)
	left.State, left.Reason, left.Message, left.Overridden = v1beta1.PodLeaving, v.Cause, Clip(v.Reason), Clip(v.Overrides)
	u.podEvents = append(u.podEvents, podEvent{*left, evictionReason(v), v.Reason})
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
		if _, marked := u.markedEvicted[v.Pod.UID]; marked || left == nil || left.State == v1beta1.PodLost {
			continue
		}
		u.markedEvicted[left.UID] = *left
		if v.Step == drain.StepSurge {
			left.State, left.Reason, left.Message = v1beta1.PodSurging, v.Cause, Clip(v.Reason)
			u.podEvents = append(u.podEvents, podEvent{*left, v1beta1.ReasonSurged, v.Reason})
		} else {
			u.markEvicted(left, v)
		}
	}
	for pod, why := range o.NotEvicted {
		left := pods[pod]
		if left == nil || left.State == v1beta1.PodLost {
			continue
		}
		u.revertEvicted(left)
		if left.State != v1beta1.PodRefused || left.Message != Clip(why.Message) {
			u.material = true // a later pass does not find it again
		}
		left.State, left.Reason, left.Message = v1beta1.PodRefused, why.Reason, Clip(why.Message)
	}
}

// flushPodEvents adds the events about pods to the timeline.
func (u *Update) flushPodEvents() {
	for _, e := range u.podEvents {
		u.recordPod(e.reason, e.left, e.what)
	}
	u.podEvents = nil
}
