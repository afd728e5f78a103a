package interruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/concurrency"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// An action that has begun does not wait in these steps: not after its window closed, and
// not when the policy changes.

// awaitApproval waits for a person's approval.
func awaitApproval(ctx context.Context, p *pass) (bool, error) {
	d := p.decision
	if !d.AwaitsApproval || p.facts.begun(p.decision) {
		return true, nil
	}
	text := fmt.Sprintf("waits for approval: `lifeboat approve %s`", p.facts.nodeName)
	if d.ProceedsAt.IsZero() {
		text += "; without it nothing is done"
	} else {
		text += "; unanswered it goes ahead at " + d.ProceedsAt.UTC().Format(time.RFC3339)
	}
	if err := p.restoreForAnother(ctx); err != nil {
		return false, err
	}
	p.outcome.Stage = v1beta1.PhaseAwaitingApproval
	p.outcome.wait(p.endsBy(d.ProceedsAt), text)
	return p.lapsed(ctx)
}

// endsBy is the earlier of a time and the end of the wait for approval.
func (p *pass) endsBy(at time.Time) time.Time {
	if lapse := p.lapsesAt(); at.IsZero() || lapse.Before(at) {
		return lapse
	}
	return at
}

// lapsesAt is when nothing is left to approve: at the end of the interruption. Without a
// deadline this is an hour after the notice was received: what it reports may be older,
// and could not be approved before.
func (p *pass) lapsesAt() time.Time {
	end := p.end()
	if d := p.decision; d.Deadline != nil || !d.Until.IsZero() {
		return end
	}
	return laterOf(end, p.decision.Notice.ReceivedTime.Add(withoutDeadline))
}

// lapsed ends the wait for approval once there is nothing left to approve. Another notice
// that still applies is handled next.
func (p *pass) lapsed(ctx context.Context) (bool, error) {
	if p.facts.now.Before(p.lapsesAt()) && (p.facts.node != nil || p.facts.awaitsNode(p.decision)) {
		return false, nil
	}
	_, err := complete(ctx, p)
	return false, err
}

// waitsForWindow reports whether the action does not begin yet.
func (f *facts) waitsForWindow(d policy.Decision) bool {
	return d.NotBefore.After(f.now) && !f.begun(d)
}

// plannedAt is when the node will be cordoned, if only its window is waited for; else zero.
func (p *pass) plannedAt() time.Time {
	if p.outcome.Stage != "" || !record.Drains(p.decision.Action) {
		return time.Time{}
	}
	return p.decision.NotBefore
}

// awaitWindow waits for the time at which policy allows the action.
func awaitWindow(ctx context.Context, p *pass) (bool, error) {
	if !p.facts.waitsForWindow(p.decision) {
		return true, nil
	}
	if err := p.restoreForAnother(ctx); err != nil {
		return false, err
	}
	at := p.decision.NotBefore
	p.outcome.wait(at, "waits for its time, which comes at "+at.UTC().Format(time.RFC3339))
	return false, nil
}

// isPostponed reports whether the node was marked, cordoned or drained, and what decides would not have
// begun yet: the node has to be restored.
func (f *facts) isPostponed(d policy.Decision) bool {
	return f.servesAnother(d) && (d.NotBefore.After(f.now) || d.AwaitsApproval)
}

// isRescheduled reports whether the cloud moved the change for which the node was drained or cordoned
// so far that this would not have begun yet.
func (f *facts) isRescheduled(d policy.Decision) bool {
	return f.isPostponed(d) && f.drain().Subject == d.About
}

// restoreForAnother restores a node that was marked, cordoned or drained for another subject than the one
// that decides, which would not have begun yet. Approval, window and budget are not inherited.
func (p *pass) restoreForAnother(ctx context.Context) error {
	if !p.facts.servesAnother(p.decision) && !p.facts.onlyMarked() {
		return nil
	}
	if _, err := restoreNode(ctx, p); err != nil {
		return err
	}
	p.outcome.Rescheduled = p.facts.isRescheduled(p.decision)
	p.outcome.Released = p.facts.servesAnother(p.decision) && !p.outcome.Rescheduled
	return nil
}

// slotRequeue is when an Interruption that waits for a slot looks again, in case the change
// that frees one is missed.
const slotRequeue = 15 * time.Second

// awaitBudget waits for a slot of the policy's budget. A hard deadline does not wait.
func awaitBudget(ctx context.Context, p *pass) (bool, error) {
	return p.awaitSlot(ctx, concurrency.Budget(&p.decision, p.facts.policies))
}

// awaitTerminationSlot waits until one more node of the pool may be terminated.
func awaitTerminationSlot(ctx context.Context, p *pass) (bool, error) {
	return p.awaitSlot(ctx, concurrency.Terminations(&p.decision, p.facts.node, func(in *v1beta1.Interruption) *corev1.Node {
		node, err := p.Nodes.NodeByInstance(ctx, in.Spec.InstanceID) // reads the cache
		if err != nil {
			return nil
		}
		return node
	}))
}

func (p *pass) awaitSlot(ctx context.Context, l *concurrency.Limit) (bool, error) {
	if l == nil || notice.IsFirm(p.decision.Deadline) || p.facts.begun(p.decision) {
		return true, nil
	}
	sentence, err := p.slots.Acquire(ctx, p.Client, l, p.facts.in, p.facts.now)
	if err != nil || sentence == "" {
		return err == nil, err
	}
	if err := p.restoreForAnother(ctx); err != nil {
		return false, err
	}
	p.outcome.Stage = v1beta1.PhaseQueued
	p.outcome.wait(p.facts.now.Add(slotRequeue), sentence)
	if d := p.decision.Deadline; d != nil && d.Time.Add(-policy.Lead).After(p.facts.now) {
		p.outcome.requeueAt(d.Time.Add(-policy.Lead)) // from then on the deadline is hard
	}
	return false, nil
}

// withoutDeadline is how long a node stays marked where nothing says when the risk ends,
// from the notice or from when it was cordoned.
const withoutDeadline = time.Hour

// never is the end of work that only its own end ends.
const never = 10 * 365 * 24 * time.Hour

// lasts reports whether the drain goes on until its notice is withdrawn: a person asked for it, or the
// instance fails its status checks.
func lasts(d policy.Decision) bool {
	return d.Notice.Kind == notice.KindRequested ||
		d.Notice.Kind == notice.KindInstanceStatus && d.Action == v1beta1.ActionDrain && d.Deadline == nil
}

// isLate reports whether the deadline has passed, and nothing was begun for it: the instance outlived it,
// or EC2 reports what happens to it.
func (p *pass) isLate() bool {
	d := &p.decision
	return d.Deadline != nil && !p.facts.now.Before(p.end()) &&
		p.facts.node != nil && !record.HasWork(&p.facts.was) && !p.facts.onlyMarked() && !p.facts.isLeaving()
}

// end is when a node that still exists counts as one that lives.
func (p *pass) end() time.Time {
	switch d := p.decision; {
	case lasts(p.decision):
		return p.facts.now.Add(never)
	case d.Deadline != nil && d.Notice.EndTime != nil && d.Notice.EndTime.After(d.Deadline.Time.Time):
		return d.Notice.EndTime.Add(notice.AfterDeadline)
	case d.Deadline != nil && !p.terminates():
		return d.Deadline.Time.Add(notice.AfterDeadline)
	case p.terminates():
		return p.facts.drain().TerminationTime.Add(notice.AfterDeadline)
	case !d.Until.IsZero():
		return d.Until
	}
	return p.endWithoutDeadline()
}

// endWithoutDeadline is when a node counts as one that lives where nothing says when the
// risk ends.
func (p *pass) endWithoutDeadline() time.Time {
	begun := p.decision.Notice.Time.Time
	c := meta.FindStatusCondition(p.facts.was.Conditions, v1beta1.ConditionCordoned)
	switch {
	case record.Drains(p.decision.Action) && p.facts.begun(p.decision):
		begun = p.decision.Begun // it may have been cordoned long before
	case p.facts.begun(p.decision) && c != nil:
		begun = c.LastTransitionTime.Time // its window may have opened long after the notice
	case p.outcome.Marked == mutate.MarkInterrupted:
		begun = p.facts.now // it begins in this pass
	}
	return laterOf(begun, laterOf(p.facts.heldUntil(), p.facts.pausedUntil())).Add(withoutDeadline)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
