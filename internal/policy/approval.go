package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// approvalState is whether an approval is required, and whether there is one.
type approvalState struct {
	awaited    bool
	proceedsAt time.Time // zero: never
	because    string    // a clause; empty if no approval is required
}

// about is the subject that an approval must name for the notice.
func about(n v1beta1.Notice) string {
	if n.Subject == "" {
		return n.Kind
	}
	return n.Kind + " " + n.Subject
}

// approved reports whether a person has approved the subject of the deciding notice. AWS reports
// one change in two ways, by Health and by EC2's scheduled events, each with its own id. An
// approval of one counts for the other.
func approved(f Facts, ruling v1beta1.Notice, notices []v1beta1.Notice) bool {
	say := f.Approval
	if say == nil || (!f.Since.IsZero() && !say.Time.After(f.Since)) {
		return false
	}
	return say.About == about(ruling) || slices.ContainsFunc(notices, func(n v1beta1.Notice) bool {
		return say.About == about(n) && !n.Withdrawn && sameChange(n, ruling)
	})
}

// sameChange reports whether two notices report the same change: same kind, same effect, and
// similar times, because the two sources are not updated at once.
func sameChange(a, b v1beta1.Notice) bool {
	reboot := func(n v1beta1.Notice) bool { return n.InstanceAction == notice.ActionReboot }
	if a.Kind != b.Kind || reboot(a) != reboot(b) || a.Deadline == nil || b.Deadline == nil {
		return false
	}
	return a.Deadline.Time.Sub(b.Deadline.Time.Time).Abs() <= lead
}

// consent says whether an approval is awaited. It is awaited for any deadline, unless the rule
// says that the action proceeds unanswered. An instance that no longer runs needs no approval:
// there is nothing left on it to protect.
func (c match) consent(f Facts, d Decision) approvalState {
	if c.approval != v1beta1.ApprovalRequired {
		return approvalState{}
	}
	if d.Approved {
		return approvalState{because: f.Approval.By + " has approved it"}
	}
	if d.InstanceGone {
		return approvalState{because: "it needs no approval any more, since the instance is gone"}
	}
	asks := fmt.Sprintf("it waits for approval (`lifeboat approve %s`)", nodeName(f))
	if c.ifUnanswered != v1beta1.UnansweredProceed {
		return approvalState{awaited: true, because: asks + ", without which nothing is done"}
	}
	at := issued(d.Notice).Add(lead)
	if d.Deadline != nil {
		at = d.Deadline.Time.Add(-lead)
	}
	if !at.After(f.Now) {
		return approvalState{because: "not approved in time, so it proceeds without approval"}
	}
	return approvalState{awaited: true, proceedsAt: at, because: fmt.Sprintf("%s until %s, and then goes ahead without", asks, wall(at.UTC()))}
}

func nodeName(f Facts) string {
	if f.Node == nil {
		return "NODE"
	}
	return cmp.Or(f.Node.Name, "NODE")
}
