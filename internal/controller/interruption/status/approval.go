package status

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// recordStage records that an Interruption starts to wait for approval or for a slot.
func (u *Update) recordStage(o Outcome) {
	if o.Stage == "" || u.before.Status.Phase == o.Stage {
		return
	}
	reason := v1beta1.ReasonQueued
	if o.Stage == v1beta1.PhaseAwaitingApproval {
		reason = v1beta1.ReasonAwaitingApproval
	}
	u.Record(reason, o.Waits)
}

// setApproval records a person's approval or hold.
func (u *Update) setApproval(in *v1beta1.Interruption) {
	d, say, held := &u.pass.Decision, in.Spec.Approval, record.Hold(in, u.now)
	switch {
	case d.AwaitsApproval:
		u.setCondition(v1beta1.ConditionApproved, false, v1beta1.ReasonAwaitingApproval, "not approved yet")
	case say != nil && d.Approved:
		if u.setCondition(v1beta1.ConditionApproved, true, v1beta1.ReasonApproved, "approved by "+statement(say)) {
			u.Record(v1beta1.ReasonApproved, "approved by "+statement(say))
		}
	}
	was := meta.IsStatusConditionTrue(u.was.Conditions, v1beta1.ConditionOnHold)
	switch {
	case held != nil:
		if text := "held by " + statement(held); u.setCondition(v1beta1.ConditionOnHold, true, v1beta1.ReasonOnHold, text) {
			u.Record(v1beta1.ReasonOnHold, text)
		}
	case was:
		u.setCondition(v1beta1.ConditionOnHold, false, v1beta1.ReasonReleased, "the hold has ended")
		u.Record(v1beta1.ReasonReleased, "the hold has ended")
	}
}

// statement is who approved or held, and why.
func statement(say *v1beta1.UserAction) string {
	if say.Note == "" {
		return say.By
	}
	return say.By + ": " + say.Note
}
