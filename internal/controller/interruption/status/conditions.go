package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// setConditions sets the conditions.
func (u *Update) setConditions(o Outcome) {
	d := u.pass.Decision
	u.setCondition(v1beta1.ConditionAccepted, true, v1beta1.ReasonDecided, d.Message)
	u.setCordoned(o)
	u.setPaused(o)
	u.setCorroborated(o)
	u.setSubject(o)
	if waits := o.Stage != "" || d.NotBefore.After(u.now) || !record.Drains(d.Action); waits && !u.pass.Pods.Known && u.Drain().StartTime == nil {
		u.Drain().Pods = slices.DeleteFunc(u.Drain().Pods, func(p v1beta1.PodStatus) bool { return record.IsPending(&p) }) // another notice listed them, whose drain did not begin
		u.CountPods()
	}
	switch {
	case !record.Drains(d.Action), o.Answered != "":
	case o.Marked != "":
		if u.Drain().StartTime == nil && o.Begun {
			u.Drain().StartTime = u.drainStart(o.MarkedAt)
		}
		u.setDrained(o)
	case !meta.IsStatusConditionTrue(u.after.Status.Conditions, v1beta1.ConditionCordoned): // it has not begun
		meta.RemoveStatusCondition(&u.after.Status.Conditions, v1beta1.ConditionDrained)
	}
	u.recordStage(o)
	u.setReplaced()
	reason, message := v1beta1.ReasonPodsRemaining, o.Waits
	switch {
	case o.Completed:
		reason, message = v1beta1.ReasonCompleted, u.summary()
	case message == "":
		pods := u.Drain().PodCounts
		message = fmt.Sprintf("%d pods are leaving, %d wait", pods.Leaving, pods.Waiting)
	default:
		reason = v1beta1.ReasonWaiting
	}
	u.setCondition(v1beta1.ConditionReady, o.Completed, reason, message)
}

// drainStart is when a drain begins, which identifies it: when the node was cordoned, or now where it may
// have been cordoned for an earlier drain.
func (u *Update) drainStart(cordoned time.Time) *metav1.MicroTime {
	at := MicroTime(u.now)
	if len(u.after.Status.History) == 0 {
		at = MicroTime(cordoned)
	}
	return &at
}

// setSubject notes for which subject the node is marked, cordoned or drained.
func (u *Update) setSubject(o Outcome) {
	d := &u.pass.Decision
	if o.Marked == "" || o.Answered != "" || o.Completed || u.pass.Node == nil {
		return
	}
	drain := u.Drain()
	isFollowUp := drain.Subject != "" && d.Notice.Kind == notice.KindInstanceStateChange
	if drain.Subject == d.About || isFollowUp {
		return
	}
	if drain.Subject != "" && !d.Continues {
		if drain.StartTime != nil {
			u.addHistory(u.ended(v1beta1.OutcomeTakenOver))
		}
		at := MicroTime(u.now)
		drain.SubjectTime = &at
	}
	drain.Kind, drain.Subject = d.Notice.Kind, d.About
}

// setCordoned records that the node was marked or restored. The boot id at that time shows later
// whether the node was rebooted. A reboot while another notice decides is not the planned one.
func (u *Update) setCordoned(o Outcome) {
	planned := u.pass.Decision.Notice.InstanceAction == notice.ActionReboot
	if node := u.pass.Node; planned && o.Marked != "" && o.Answered == "" && !o.Completed && node != nil && u.Drain().BootID == "" {
		u.Drain().BootID = node.Status.NodeInfo.BootID
	}
	switch {
	case o.KeepsDrain:
	case o.Completed, o.Answered != "":
		u.setCondition(v1beta1.ConditionCordoned, false, v1beta1.ReasonNodeRestored, "nothing keeps pods off the node any more")
	case o.Marked == mutate.MarkInterrupted:
		if u.setCondition(v1beta1.ConditionCordoned, true, v1beta1.ReasonCordoned, "no new pods are scheduled to the node") {
			u.RecordAt(o.MarkedAt, v1beta1.ReasonCordoned, "the node takes no new pods and is out of external load balancers")
		}
	case o.Marked == mutate.MarkAtRisk:
		if u.setCondition(v1beta1.ConditionCordoned, false, v1beta1.ReasonMarkedAtRisk, "the scheduler prefers other nodes") {
			u.Record(v1beta1.ReasonMarkedAtRisk, "the scheduler prefers other nodes; its pods stay")
		}
	}
}

// setDrained sets the condition Drained.
func (u *Update) setDrained(o Outcome) {
	if !o.Drained {
		message := fmt.Sprintf("%d pods have to leave", len(record.Pending(u.Drain())))
		if o.Abandoned {
			message = fmt.Sprintf("%d pods are not waited for: the grace of each is over, and the node's kubelet does not report", len(record.Pending(u.Drain())))
		}
		u.setCondition(v1beta1.ConditionDrained, false, v1beta1.ReasonPodsRemaining, message)
		return
	}
	if u.setCondition(v1beta1.ConditionDrained, true, v1beta1.ReasonDrained, u.summary()) {
		u.Record(v1beta1.ReasonDrained, u.summary()+u.slack())
	}
}

// setCondition sets a condition and reports whether its status or reason changed.
func (u *Update) setCondition(typ string, status bool, reason, message string) bool {
	c := metav1.Condition{
		Type: typ, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: u.before.Generation, LastTransitionTime: metav1.NewTime(u.now),
	}
	if status {
		c.Status = metav1.ConditionTrue
	}
	was := meta.FindStatusCondition(u.before.Status.Conditions, typ)
	meta.SetStatusCondition(&u.after.Status.Conditions, c)
	return was == nil || was.Status != c.Status || was.Reason != c.Reason
}

// phase computes the one-word summary.
func phase(s *v1beta1.InterruptionStatus, stage v1beta1.Phase, withdrawn, hasNode bool, now time.Time) v1beta1.Phase {
	if stage != "" && s.CompletionTime == nil {
		return stage
	}
	switch s.Decision.Action {
	case v1beta1.ActionIgnore:
		if withdrawn {
			return v1beta1.PhaseCancelled
		}
		return v1beta1.PhaseIgnored
	case v1beta1.ActionNotify:
		return notifyPhase(s)
	}
	return drainPhase(s, hasNode, now)
}

// drainPhase is the phase of an Interruption whose node is cordoned or drained.
func drainPhase(s *v1beta1.InterruptionStatus, hasNode bool, now time.Time) v1beta1.Phase {
	is := func(typ string) bool { return meta.IsStatusConditionTrue(s.Conditions, typ) }
	switch {
	case s.CompletionTime != nil && hasNode && outlived(s, now):
		return v1beta1.PhaseCancelled
	case s.CompletionTime != nil:
		return v1beta1.PhaseCompleted
	case is(v1beta1.ConditionDrained):
		return v1beta1.PhaseDrained
	case is(v1beta1.ConditionCordoned) && s.Decision.Action == v1beta1.ActionCordon:
		return v1beta1.PhaseCordoned
	case is(v1beta1.ConditionCordoned):
		return v1beta1.PhaseDraining
	}
	return v1beta1.PhaseScheduled
}
