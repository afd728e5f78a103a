package interruption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// conditions says in the manner of the Kubernetes conventions how far it has
// come.
func (r *report) conditions(o outcome) {
	d := r.seen.decision
	r.condition(v1alpha1.ConditionAccepted, true, v1alpha1.ReasonDecided, d.Message)
	r.marked(o)
	switch {
	case !record.Drains(d.Action), o.answered != "":
	case o.marked != "":
		if r.drain().StartTime == nil {
			r.drain().StartTime = r.drainStart(o.markedAt)
		}
		r.drained(o)
	case !meta.IsStatusConditionTrue(r.after.Status.Conditions, v1alpha1.ConditionCordoned): // it has not begun
		meta.RemoveStatusCondition(&r.after.Status.Conditions, v1alpha1.ConditionDrained)
	}
	r.staged(o)
	r.replaced()
	reason, message := v1alpha1.ReasonPodsLeft, o.waits
	switch {
	case o.completed:
		reason, message = v1alpha1.ReasonCompleted, r.summary()
	case message == "":
		pods := r.drain().Pods
		message = fmt.Sprintf("%d pods are leaving, %d wait", pods.Leaving, pods.Waiting)
	default:
		reason = v1alpha1.ReasonWaiting
	}
	r.condition(v1alpha1.ConditionReady, o.completed, reason, message)
}

// drainStart is when a drain begins: when the node was cordoned, or now where it was
// cordoned for an earlier drain. The start time identifies the drain.
func (r *report) drainStart(cordoned time.Time) *metav1.MicroTime {
	at := microTime(r.now)
	if len(r.after.Status.Answered) == 0 && r.after.Status.Since == nil {
		at = microTime(cordoned)
	}
	return &at
}

// marked notes that the node was marked or restored. The boot id at that time tells
// later whether the node was rebooted since.
func (r *report) marked(o outcome) {
	if node := r.seen.facts.node; o.marked != "" && o.answered == "" && !o.completed && node != nil && r.drain().BootID == "" {
		r.drain().BootID = node.Status.NodeInfo.BootID
	}
	switch {
	case o.completed, o.answered != "":
		r.condition(v1alpha1.ConditionCordoned, false, v1alpha1.ReasonPutBack, "nothing keeps pods off the node any more")
	case o.marked == action.MarkDoomed:
		if r.condition(v1alpha1.ConditionCordoned, true, v1alpha1.ReasonCordoned, "no new pods are scheduled to the node") {
			r.happenAt(o.markedAt, v1alpha1.ReasonCordoned, "the node takes no new pods and is out of external load balancers")
		}
	case o.marked == action.MarkAtRisk:
		if r.condition(v1alpha1.ConditionCordoned, false, v1alpha1.ReasonMarkedAtRisk, "the scheduler prefers other nodes") {
			r.happen(v1alpha1.ReasonMarkedAtRisk, "the scheduler prefers other nodes; its pods stay")
		}
	}
}

// staged notes that a record begins to wait for a person, or for its turn.
func (r *report) staged(o outcome) {
	if o.stage == "" || r.before.Status.Phase == o.stage {
		return
	}
	reason := v1alpha1.ReasonQueued
	if o.stage == v1alpha1.PhaseAwaitingApproval {
		reason = v1alpha1.ReasonAwaitingApproval
	}
	r.happen(reason, o.waits)
}

// said notes what people have said: that they approve, or that they hold it.
func (r *report) said(f *facts, d policy.Decision) {
	say, held := f.in.Spec.Approval, record.Hold(f.in, f.now)
	switch {
	case d.AwaitsApproval:
		r.condition(v1alpha1.ConditionApproved, false, v1alpha1.ReasonAwaitingApproval, "nobody has approved it yet")
	case say != nil && d.Approved:
		if r.condition(v1alpha1.ConditionApproved, true, v1alpha1.ReasonApproved, "approved by "+spoken(say)) {
			r.happen(v1alpha1.ReasonApproved, "approved by "+spoken(say))
		}
	}
	was := meta.IsStatusConditionTrue(f.was.Conditions, v1alpha1.ConditionOnHold)
	switch {
	case held != nil:
		if text := "held by " + spoken(held); r.condition(v1alpha1.ConditionOnHold, true, v1alpha1.ReasonOnHold, text) {
			r.happen(v1alpha1.ReasonOnHold, text)
		}
	case was:
		r.condition(v1alpha1.ConditionOnHold, false, v1alpha1.ReasonReleased, "nobody holds it any more")
		r.happen(v1alpha1.ReasonReleased, "nobody holds it any more")
	}
}

// spoken is who said something, and why.
func spoken(say *v1alpha1.Say) string {
	if say.Note == "" {
		return say.By
	}
	return say.By + ": " + say.Note
}

func (r *report) drained(o outcome) {
	if !o.drained {
		r.condition(v1alpha1.ConditionDrained, false, v1alpha1.ReasonPodsLeft,
			fmt.Sprintf("%d pods have to leave", len(r.drain().PendingPods)))
		return
	}
	if r.condition(v1alpha1.ConditionDrained, true, v1alpha1.ReasonDrained, r.summary()) {
		r.happen(v1alpha1.ReasonDrained, r.summary()+r.spare())
	}
}

// spare says how much time there was left.
func (r *report) spare() string {
	deadline := r.seen.decision.Deadline
	if deadline == nil {
		return ""
	}
	left := deadline.Time.Sub(r.now).Round(time.Second)
	if left < 0 {
		return fmt.Sprintf(", %s after the deadline", -left)
	}
	return fmt.Sprintf(", %s before the deadline", left)
}

// condition sets a condition and reports whether its status or reason changed.
func (r *report) condition(typ string, status bool, reason, message string) bool {
	c := metav1.Condition{
		Type: typ, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: r.before.Generation, LastTransitionTime: metav1.NewTime(r.now),
	}
	if status {
		c.Status = metav1.ConditionTrue
	}
	was := meta.FindStatusCondition(r.before.Status.Conditions, typ)
	meta.SetStatusCondition(&r.after.Status.Conditions, c)
	return was == nil || was.Status != c.Status || was.Reason != c.Reason
}

// phase computes the one-word summary.
func phase(s *v1alpha1.InterruptionStatus, stage v1alpha1.Phase, withdrawn, nodeThere bool, now time.Time) v1alpha1.Phase {
	if stage != "" && s.CompletionTime == nil {
		return stage
	}
	switch s.Decision.Action {
	case v1alpha1.ActionIgnore:
		if withdrawn {
			return v1alpha1.PhaseCancelled
		}
		return v1alpha1.PhaseIgnored
	case v1alpha1.ActionNotify:
		return notified(s)
	}
	return moving(s, nodeThere, now)
}

// moving is the phase of what is cordoned or drained.
func moving(s *v1alpha1.InterruptionStatus, nodeThere bool, now time.Time) v1alpha1.Phase {
	is := func(typ string) bool { return meta.IsStatusConditionTrue(s.Conditions, typ) }
	switch {
	case s.CompletionTime != nil && nodeThere && outlived(s, now):
		return v1alpha1.PhaseCancelled
	case s.CompletionTime != nil:
		return v1alpha1.PhaseCompleted
	case is(v1alpha1.ConditionDrained):
		return v1alpha1.PhaseDrained
	case is(v1alpha1.ConditionCordoned) && s.Decision.Action == v1alpha1.ActionCordon:
		return v1alpha1.PhaseCordoned
	case is(v1alpha1.ConditionCordoned):
		return v1alpha1.PhaseDraining
	}
	return v1alpha1.PhaseScheduled
}

// notified is the phase of what is only reported.
func notified(s *v1alpha1.InterruptionStatus) v1alpha1.Phase {
	switch {
	case s.CompletionTime != nil:
		return v1alpha1.PhaseCompleted
	case meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionCordoned) == nil:
		return v1alpha1.PhaseScheduled // it is not marked yet
	}
	return v1alpha1.PhaseNotified
}

// outlived reports whether the deadline, if there was one, is well past: the
// node that is still there lives.
func outlived(s *v1alpha1.InterruptionStatus, now time.Time) bool {
	return s.Deadline == nil || !now.Before(s.Deadline.Time.Add(afterDeadline))
}
