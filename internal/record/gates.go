package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

// Hold returns the hold that is in force at a time, or nil.
func Hold(in *v1beta1.Interruption, at time.Time) *v1beta1.UserAction {
	hold := counted(in.Spec.Hold, at)
	if hold == nil || (hold.Until != nil && !at.Before(hold.Until.Time)) || !hold.Time.After(Since(&in.Status)) {
		return nil
	}
	return hold
}

// Released is when the latest hold ended, by a person or because it expired; zero: there was
// none. It is never in the future.
func Released(in *v1beta1.Interruption, now time.Time) time.Time {
	var at time.Time
	if hold := counted(in.Spec.Hold, now); hold != nil && hold.Until != nil && hold.Time.After(Since(&in.Status)) {
		at = hold.Until.Time
	}
	if released := counted(in.Spec.Released, now); released != nil && released.Time.After(Since(&in.Status)) && released.Time.After(at) {
		at = released.Time.Time
	}
	if at.After(now) {
		return now
	}
	return at
}

// HoldGate is the gate of a hold.
func HoldGate(hold *v1beta1.UserAction) drain.Gate {
	g := drain.Gate{Why: hold.By + " holds it"}
	if hold.Note != "" {
		g.Why += fmt.Sprintf(" (%s)", hold.Note)
	}
	if hold.Until != nil {
		g.Until = hold.Until.Time
		g.Why += " until " + g.Until.UTC().Format(time.RFC3339)
	}
	return g
}

// GoAhead is when a person last approved, or zero.
func GoAhead(in *v1beta1.Interruption, now time.Time) time.Time {
	if say := counted(in.Spec.Approval, now); say != nil {
		return say.Time.Time
	}
	return time.Time{}
}

// Hook is the status of a hook, or nil if it has not begun.
func Hook(status []v1beta1.HookStatus, name string) *v1beta1.HookStatus {
	if i := slices.IndexFunc(status, func(s v1beta1.HookStatus) bool { return s.Name == name }); i >= 0 {
		return &status[i]
	}
	return nil
}

// Holds reports whether a hook has used up its tries and holds the drain: it was not approved
// since.
func Holds(h *v1beta1.Hook, s *v1beta1.HookStatus, goAhead time.Time) bool {
	return s != nil && s.State == v1beta1.HookFailed && s.CompletionTime != nil && !hooks.IsFinished(*h, *s, goAhead)
}

// HookGate returns the gate of a hook before the drain, and whether it is closed. node is the
// argument for `lifeboat approve`.
func HookGate(h *v1beta1.Hook, s *v1beta1.HookStatus, goAhead time.Time, node string) (drain.Gate, bool) {
	why := hooks.WaitReason(*h, s, hooks.Subject{Node: node}, goAhead)
	return drain.Gate{Why: why}, why != ""
}
