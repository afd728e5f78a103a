package interruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

const (
	// maxPendingPods bounds status.drain.pendingPods; a kubelet's default limit is 110.
	maxPendingPods = 300
	// verdictLost is the verdict on a pod whose instance went before it.
	verdictLost = "Lost"
	// verdictRefused is the verdict on a pod that the plan says is to be asked to
	// stop, and which could not be: the API server refused, or did not answer.
	verdictRefused = "Refused"
)

// settle accounts for the pods that were listed and no longer have to leave:
// they are gone, or have finished and are about to be.
func (r *report) settle(f *facts, plan drain.Plan, d policy.Decision) {
	still := map[types.UID]bool{}
	for _, v := range plan.Verdicts {
		still[v.Pod.UID] = v.Step != drain.StepStays || (v.Pod.Status.Phase != corev1.PodSucceeded && v.Pod.Status.Phase != corev1.PodFailed)
	}
	var gone, lost []string
	for _, left := range f.drain().PendingPods {
		switch {
		case still[left.UID]:
		case left.Verdict == verdictLost: // counted when it was found to be
		case inTime(left, d.Deadline, f.now):
			gone = append(gone, departure(left, f.now))
		default:
			lost = append(lost, podName(left))
		}
	}
	r.moved += len(gone)
	r.drain().Pods.Moved += int32(len(gone))
	r.happenTo(v1alpha1.ReasonPodGone, "left", gone)
	r.lose(lost, "was still there when the deadline passed")
}

// inTime reports whether a pod that is gone left before the instance did: it
// was seen to be gone by then, or its grace had ended by then.
func inTime(left v1alpha1.PendingPod, deadline *v1alpha1.Deadline, now time.Time) bool {
	if deadline == nil || deadline.Type != v1alpha1.DeadlineHard || !now.After(deadline.Time.Time) {
		return true
	}
	if left.AskedTime == nil || left.GraceSeconds == nil {
		return false
	}
	end := left.AskedTime.Add(time.Duration(*left.GraceSeconds) * time.Second)
	return !end.After(deadline.Time.Time)
}

// departure tells how a pod left.
func departure(left v1alpha1.PendingPod, now time.Time) string {
	if left.AskedTime == nil || left.GraceSeconds == nil {
		return podName(left)
	}
	took := now.Sub(left.AskedTime.Time).Round(time.Second)
	return fmt.Sprintf("%s (%s of %ds grace)", podName(left), took, *left.GraceSeconds)
}

// list writes down the pods that have to leave, with what the plan says.
func (r *report) list(f *facts, plan drain.Plan, d policy.Decision) {
	was := map[types.UID]v1alpha1.PendingPod{}
	for _, left := range f.drain().PendingPods {
		was[left.UID] = left
	}
	var (
		lost       []string
		held, list []v1alpha1.PendingPod
	)
	for _, v := range plan.Left() {
		left, known := was[v.Pod.UID]
		left = f.entry(left, v)
		if d.InstanceGone || (f.node == nil && f.nodeName != "") {
			if left.Verdict != verdictLost {
				lost = append(lost, podName(left))
			}
			left.Verdict, left.Reason = verdictLost, "its instance went before it had left"
		}
		if v.Step == drain.StepWaits && (!known || was[v.Pod.UID].Reason != left.Reason) && !f.isTold(v) {
			held = append(held, left)
		}
		list = append(list, left)
	}
	r.lose(lost, "was still there when its instance went")
	r.happenEach(v1alpha1.ReasonHeld, held)
	r.drain().PendingPods = list[:min(len(list), maxPendingPods)]
}

// isTold reports whether what a pod waits for is told elsewhere: the record says
// what all pods wait for, and that a successor was started says that it is waited
// for.
func (f *facts) isTold(v drain.Verdict) bool {
	if v.Pod.Labels[v1alpha1.LabelSurged] != "" {
		return true
	}
	return slices.ContainsFunc(f.gates, func(g drain.Gate) bool { return strings.Contains(v.Reason, g.Why) })
}

// entry updates the entry of a pod with what the plan says about it now.
func (f *facts) entry(left v1alpha1.PendingPod, v drain.Verdict) v1alpha1.PendingPod {
	pod := v.Pod
	left.Namespace, left.Name, left.UID = pod.Namespace, pod.Name, pod.UID
	switch {
	case left.Verdict == verdictLost,
		left.Verdict == verdictRefused && (v.Step == drain.StepEvict || v.Step == drain.StepDelete),
		f.evictedUntil(v).After(f.now) && v.Step != drain.StepLeaving: // the cache is stale
	default:
		left.Verdict, left.Reason = string(v.Step), clip(v.Reason)
		if pod.DeletionTimestamp == nil { // it was about to be asked when something came in between
			left.AskedTime, left.GraceSeconds = nil, nil
		}
	}
	if !v.LastCall.IsZero() {
		at := metav1.NewTime(v.LastCall)
		left.LastCall = &at
	}
	if asked, grace, ok := askedToStop(pod); ok && !isSame(left, asked, grace) {
		left.AskedTime, left.GraceSeconds = &asked, &grace
	}
	return left
}

// isSame reports whether an entry says already, to the second that the two clocks
// may be apart, when a pod was asked to stop: to correct that would cost a write
// for each node.
func isSame(left v1alpha1.PendingPod, asked metav1.Time, grace int64) bool {
	return left.AskedTime != nil && left.GraceSeconds != nil && *left.GraceSeconds == grace &&
		left.AskedTime.Sub(asked.Time).Abs() <= time.Second
}

// askedToStop reads when a terminating pod was asked to stop and what time it
// was given: the API server sets the deletion timestamp to the end of it.
func askedToStop(pod *corev1.Pod) (metav1.Time, int64, bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return metav1.Time{}, 0, false
	}
	grace := *pod.DeletionGracePeriodSeconds
	return metav1.NewTime(pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)), grace, true
}

func reasonFor(v drain.Verdict) string {
	switch {
	case v.Overrides != "":
		return v1alpha1.ReasonOverridden
	case v.Step == drain.StepDelete:
		return v1alpha1.ReasonDeleted
	}
	return v1alpha1.ReasonEvicted
}

// lose counts pods that are lost.
func (r *report) lose(names []string, how string) {
	r.lost += len(names)
	r.drain().Pods.Lost += int32(len(names))
	r.happenTo(v1alpha1.ReasonPodLost, how+":", names)
}

// count brings the counts in line with the list.
func (r *report) count() {
	pods := &r.drain().Pods
	pods.Leaving, pods.Waiting = 0, 0
	for _, left := range r.drain().PendingPods {
		switch left.Verdict {
		case verdictLost:
		case string(drain.StepLeaving):
			pods.Leaving++
		default:
			pods.Waiting++
		}
	}
	pods.Total = pods.Moved + pods.Lost + pods.Leaving + pods.Waiting
}

func podName(left v1alpha1.PendingPod) string { return left.Namespace + "/" + left.Name }

// clip keeps a sentence within what the CRD takes.
func clip(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
