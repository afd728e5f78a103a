package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// applyEndings notes that the drain of a node ended, because it was restored.
func (u *Update) applyEndings(o Outcome) {
	if o.Rescheduled {
		u.setRescheduled(o)
	}
	if o.Released {
		u.after.Status.Deadline = u.pass.Decision.Deadline
		u.endDrain(v1beta1.OutcomeReleased)
	}
	if o.Released && (u.pass.Decision.Action != v1beta1.ActionCordon || o.Node == nil || !mutate.IsMarked(o.Node, mutate.MarkInterrupted)) {
		u.setCondition(v1beta1.ConditionCordoned, false, v1beta1.ReasonNodeRestored, "the deciding notice does not drain the node")
	}
}

// recordEndings adds the timeline entries of how a drain ends other than by completion.
func (u *Update) recordEndings(o Outcome) {
	if o.Terminated {
		u.Record(v1beta1.ReasonTerminated, "the cloud was asked to terminate the instance")
	}
	if o.SurgesUndone > 0 {
		u.Record(v1beta1.ReasonSurgeReverted, fmt.Sprintf("%d pods are their ReplicaSets' again", o.SurgesUndone))
	}
	if o.Restored && !u.pass.Decision.InstanceGone {
		u.Record(v1beta1.ReasonNodeRestored, "the node is as it was before")
	}
	if o.Answered != "" {
		if o.KeepsDrain {
			u.addHistory(v1beta1.HistoryEntry{Kind: u.pass.Decision.Notice.Kind, Outcome: v1beta1.OutcomeHandled, EndTime: MicroTime(u.now)}, o.Answered)
		} else {
			u.endDrain(v1beta1.OutcomeHandled, o.Answered)
		}
		u.Record(v1beta1.ReasonNoticeHandled, u.pass.Decision.Notice.Kind+" is dealt with; another notice still stands")
	}
}

// setRescheduled notes that a node whose drain had begun was restored.
func (u *Update) setRescheduled(o Outcome) {
	u.after.Status.Deadline = u.pass.Decision.Deadline
	u.endDrain(v1beta1.OutcomePostponed)
	text := "the deadline has moved; the node is as it was before"
	if o.SurgesUndone > 0 {
		text += fmt.Sprintf(", and %d pods are their ReplicaSets' again", o.SurgesUndone)
	}
	u.setCondition(v1beta1.ConditionCordoned, false, v1beta1.ReasonPostponed, text)
	u.Record(v1beta1.ReasonPostponed, text)
}

// endDrain moves the drain to the history: the node lives, or another drain begins.
func (u *Update) endDrain(outcome v1beta1.Outcome, handled ...string) {
	s := &u.after.Status
	if e := u.ended(outcome); e.StartTime != nil || record.Cordoned(s) || len(handled) > 0 { // a mark alone is no work
		u.addHistory(e, handled...)
	}
	s.Drain = nil
	meta.RemoveStatusCondition(&s.Conditions, v1beta1.ConditionReplaced)
	meta.RemoveStatusCondition(&s.Conditions, v1beta1.ConditionDrained)
}

// notifyPhase is the phase of an Interruption that is only reported.
func notifyPhase(s *v1beta1.InterruptionStatus) v1beta1.Phase {
	switch {
	case s.CompletionTime != nil:
		return v1beta1.PhaseCompleted
	case meta.FindStatusCondition(s.Conditions, v1beta1.ConditionCordoned) == nil:
		return v1beta1.PhaseScheduled // it is not marked yet
	}
	return v1beta1.PhaseNotified
}

// outlived reports whether the deadline is well past, so that a node that still exists counts as
// alive.
func outlived(s *v1beta1.InterruptionStatus, now time.Time) bool {
	return s.Deadline == nil || !now.Before(s.Deadline.Time.Add(notice.AfterDeadline))
}
