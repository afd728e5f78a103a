package cli

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// replaceGate returns what pods wait for while the node's replacement starts, and false if they do not
// wait. Its end is the expected time at which the replacement is Ready, unless that has passed or there is
// no capacity.
func (w *observed) replaceGate(d policy.Decision, begins time.Time) (drain.Gate, bool) {
	status := w.replacementStatus(d)
	if gate, waits := replacement.Gate(status, d.Deadline); status != nil {
		if at := w.capacityAt(d, begins); waits && at.After(begins) && replacement.IsOrdered(status) {
			gate.Until = at
		}
		return gate, waits
	}
	if !w.wantsReplacement(d) {
		return drain.Gate{}, false
	}
	return drain.Gate{Why: "its replacement is not Ready yet", Until: w.capacityAt(d, begins)}, true
}

// capacityAt is when a replacement that pods wait for is expected to be Ready; zero: they wait for none.
func (w *observed) capacityAt(d policy.Decision, begins time.Time) time.Time {
	if status := w.replacementStatus(d); status != nil {
		return replacement.ExpectedAt(status, d.Deadline, nil)
	}
	if w.wantsReplacement(d) {
		return begins.Add(replacement.BootTime)
	}
	return time.Time{}
}

// wantsReplacement reports whether Lifeboat orders a replacement from Karpenter. What it asks of an
// Auto Scaling group depends on what the controller knows of the group.
func (w *observed) wantsReplacement(d policy.Decision) bool {
	return record.Drains(d.Action) && d.Replacement == v1beta1.ReplacementBefore && !d.InstanceGone && replacement.IsKarpenters(w.node)
}

// replacementPlan describes the replacement: what is ordered, and when it is expected to be Ready.
func (w *observed) replacementPlan(d policy.Decision, begins time.Time) string {
	if status := w.replacementStatus(d); status != nil {
		text := fmt.Sprintf("%s (%s)", status.Message, status.Reason)
		if at := w.capacityAt(d, begins); at.After(w.now) {
			text += ", expected Ready " + terminal.Relative(at, w.now)
		}
		return text
	}
	if !w.wantsReplacement(d) {
		return ""
	}
	return fmt.Sprintf("a NodeClaim of NodePool %s is ordered when the drain starts; its node is expected Ready %s later, and pods wait for it, at most until their last call",
		w.node.Labels[replacement.LabelNodePool], terminal.Duration(replacement.BootTime))
}
