// Package record reads Interruptions for both the controller and the CLI, so that they cannot
// differ: the input of policy, what pods wait for, and whether the node is being drained. It is
// pure.
package record

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// Facts is the input of policy for a record; node may be nil.
func Facts(in *v1beta1.Interruption, node *corev1.Node, policies []v1beta1.InterruptionPolicy, now time.Time) policy.Facts {
	f := policy.Facts{
		Now: now, Notices: in.Spec.Notices, Since: Since(&in.Status), Answered: notice.Handled(&in.Status),
		Node: node, Policies: policies, Approval: counted(in.Spec.Approval, now),
		Begun: SubjectTime(&in.Status), BegunFor: Drain(&in.Status).Subject, BegunDeadline: in.Status.Deadline,
		Held: Hold(in, now) != nil, Released: latest(Released(in, now), Resumed(&in.Status, now)),
	}
	if a := in.Status.LifecycleHooks; a != nil && len(a.Hooks) > 0 && a.WaitingSince != nil {
		f.Extended, f.Retained = true, a.RetainOnAbandon
		f.ExtendedUntil = extendedUntil(a)
	}
	return f
}

// expiryMargin is how long before the hooks time out the last pod has to be gone: package lifecycle
// completes them then.
const expiryMargin = 10 * time.Second

// failedHeartbeats is how many heartbeats in a row have to fail before the timeout counts as the end
// of the instance: one that succeeds later moves the end back, and what was overridden stays so.
const failedHeartbeats = 3

// extendedUntil is until when heartbeats extend the lifecycle hooks; zero: no end is known. While they
// fail again and again, for whatever reason, nothing extends the hooks past the timeout that runs.
func extendedUntil(h *v1beta1.LifecycleHooksStatus) time.Time {
	var until time.Time
	if h.EndTime != nil {
		until = h.EndTime.Time
	}
	if h.FailedHeartbeats >= failedHeartbeats && h.ExpiryTime != nil {
		if fails := h.ExpiryTime.Add(-expiryMargin); until.IsZero() || fails.Before(until) {
			until = fails
		}
	}
	return until
}

// Drain returns the drain of a status for reading; an empty one if there is none.
func Drain(s *v1beta1.InterruptionStatus) *v1beta1.DrainStatus {
	if s.Drain == nil {
		return &v1beta1.DrainStatus{}
	}
	return s.Drain
}

// EnsureDrain returns the drain of a status for writing, and adds it if necessary.
func EnsureDrain(s *v1beta1.InterruptionStatus) *v1beta1.DrainStatus {
	if s.Drain == nil {
		s.Drain = &v1beta1.DrainStatus{}
	}
	return s.Drain
}

// Since is when the interruption before this one was completed, or zero.
func Since(s *v1beta1.InterruptionStatus) time.Time {
	history := s.History
	if s.CompletionTime != nil && len(history) > 0 {
		history = history[:len(history)-1] // the last entry is about this one
	}
	return notice.Completed(history)
}

// Begun is when the node was cordoned for a drain, or zero. The drain of a node that was only
// cordoned has not begun: it still waits, for example for approval.
func Begun(s *v1beta1.InterruptionStatus) time.Time {
	if s.Drain == nil || s.Drain.StartTime == nil {
		return time.Time{}
	}
	return s.Drain.StartTime.Time
}

// SubjectTime is when the drain began to serve the subject that it serves now, or zero. A node may have
// been marked for that subject long before.
func SubjectTime(s *v1beta1.InterruptionStatus) time.Time {
	begun := Begun(s)
	if begun.IsZero() || s.Drain.SubjectTime == nil {
		return begun
	}
	return latest(begun, s.Drain.SubjectTime.Time)
}

// HasWork reports whether something was done to the node: it is marked, cordoned or drained.
func HasWork(s *v1beta1.InterruptionStatus) bool {
	return !Begun(s).IsZero() || Cordoned(s) || Drain(s).Subject != ""
}

// Cordoned reports whether the node is cordoned.
func Cordoned(s *v1beta1.InterruptionStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionCordoned)
}

// Drains reports whether an action moves pods.
func Drains(a v1beta1.Action) bool {
	return a == v1beta1.ActionDrain || a == v1beta1.ActionTerminate
}

// IsDrill reports whether the Interruption is a drill.
func IsDrill(in *v1beta1.Interruption) bool {
	return slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return n.Drill })
}

// later is more seconds than lie between any two deadlines: every soft deadline ranks after
// every hard one.
const later = 1 << 40

// Priority ranks Interruptions; higher goes first: the earliest hard deadline, then the earliest
// soft one, then those without, then those without a node.
func Priority(in *v1beta1.Interruption, hasNode bool) int {
	if notice.Finished(in) || !hasNode {
		return -3 * later
	}
	deadline := notice.Deadline(notice.Unanswered(in.Spec.Notices, notice.Handled(&in.Status)))
	switch {
	case deadline == nil:
		return -2 * later
	case deadline.Type == v1beta1.DeadlineSoft:
		return -later - int(deadline.Time.Unix())
	}
	return -int(deadline.Time.Unix())
}
