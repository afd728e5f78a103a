package interruption

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// withoutDeadline is how long a node stays marked where nothing says when the risk ends,
// from the notice or from when it was cordoned.
const withoutDeadline = time.Hour

// awaitInstanceGone waits until the node or its instance is gone, or its deadline is well
// past.
func awaitInstanceGone(_ context.Context, p *pass) (bool, error) {
	end := p.end()
	switch {
	case p.facts.awaitsNode(p.decision):
		end = p.decision.Notice.Deadline.Time.Time
	case p.facts.node == nil && p.plan.Empty(),
		p.decision.InstanceGone && !nodeindex.Ready(p.facts.node),
		p.decision.Notice.InstanceAction == notice.ActionReboot && p.facts.rebooted():
		return true, nil
	case !p.facts.now.Before(end) && p.facts.isLeaving(): // for example another hook holds it
		end = p.facts.now.Add(leavingRequeue).Truncate(leavingRequeue)
	case !p.facts.now.Before(end):
		return true, nil
	}
	p.outcome.wait(end, "waits for the instance to go, at the latest until "+end.UTC().Format(time.RFC3339))
	return false, nil
}

// awaitsNode reports whether the node is gone and its instance may still run: a node that a
// person or a controller deleted registers again, and the planned change still applies.
func (f *facts) awaitsNode(d policy.Decision) bool {
	planned := d.Notice.Deadline // the decision's is hard in the last hour
	return f.node == nil && !d.InstanceGone && !d.Withdrawn && planned != nil &&
		planned.Type == v1alpha1.DeadlineSoft && planned.Time.After(f.now)
}

// end is when a node that still exists counts as one that lives.
func (p *pass) end() time.Time {
	switch d := p.decision; {
	case d.Deadline != nil && d.Notice.EndTime != nil && d.Notice.EndTime.After(d.Deadline.Time.Time):
		return d.Notice.EndTime.Add(status.AfterDeadline)
	case d.Deadline != nil && !p.terminates():
		return d.Deadline.Time.Add(status.AfterDeadline)
	case p.terminates():
		return p.facts.drain().TerminationTime.Add(status.AfterDeadline)
	case !d.Until.IsZero():
		return d.Until
	}
	begun := p.decision.Notice.Time.Time
	c := meta.FindStatusCondition(p.facts.was.Conditions, v1alpha1.ConditionCordoned)
	switch {
	case record.Drains(p.decision.Action) && p.facts.begun(p.decision):
		begun = record.Begun(&p.facts.was) // it may have been cordoned long before
	case p.facts.begun(p.decision) && c != nil:
		begun = c.LastTransitionTime.Time // its window may have opened long after the notice
	case p.outcome.Marked == mutate.MarkInterrupted:
		begun = p.facts.now // it begins in this pass
	}
	return laterOf(begun, p.facts.heldUntil()).Add(withoutDeadline)
}

// terminates reports whether Lifeboat has requested the termination for what is decided
// now: for the action Terminate, or since the instance was detached from its group.
func (p *pass) terminates() bool {
	return p.facts.drain().TerminationTime != nil &&
		(p.decision.Action == v1alpha1.ActionTerminate || replacement.IsDetached(p.facts.drain().Replacement) || p.facts.isRetained())
}

// complete completes the Interruption, or, where another notice still applies, only the
// work for this notice.
func complete(_ context.Context, p *pass) (bool, error) {
	if p.facts.otherNoticeApplies(p.decision) && !replacement.IsDetached(p.facts.drain().Replacement) {
		p.outcome.Answered = p.decision.Notice.ID
		p.outcome.wait(p.facts.now, "waits for the next notice")
		return false, nil
	}
	p.outcome.Completed = true
	return true, nil
}
