package interruption

import (
	"context"
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// What has begun goes on, whatever is waited for here: after its window has
// closed, and when somebody changes the policy.

// approval waits for a person's go-ahead.
func approval(ctx context.Context, p *pass) (bool, error) {
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
	if p.facts.onlyMarked() {
		if _, err := putBack(ctx, p); err != nil {
			return false, err
		}
	}
	p.outcome.stage = v1alpha1.PhaseAwaitingApproval
	p.outcome.until(p.ends(d.ProceedsAt), text)
	return p.lapsed(ctx)
}

// ends is the sooner of a moment and when nothing is left to approve.
func (p *pass) ends(at time.Time) time.Time {
	if lapse := p.lapsesAt(); at.IsZero() || lapse.Before(at) {
		return lapse
	}
	return at
}

// lapsesAt is when nothing is left to approve: at the end of the interruption. What has
// no deadline is asked about for an hour from when it was heard of: it may have been so
// for longer before, and nobody could answer then.
func (p *pass) lapsesAt() time.Time {
	end := p.end()
	if d := p.decision; d.Deadline != nil || !d.Until.IsZero() {
		return end
	}
	return laterOf(end, p.decision.Notice.ReceivedTime.Add(withoutDeadline))
}

// lapsed ends the wait for approval once there is nothing left to approve. Another
// notice that still stands is handled next.
func (p *pass) lapsed(ctx context.Context) (bool, error) {
	if p.facts.now.Before(p.lapsesAt()) && (p.facts.node != nil || p.facts.awaitsNode(p.decision)) {
		return false, nil
	}
	_, err := complete(ctx, p)
	return false, err
}

// window waits for the time at which policy lets the action begin.
func window(ctx context.Context, p *pass) (bool, error) {
	if p.facts.postponed(p.decision) {
		if _, err := putBack(ctx, p); err != nil {
			return false, err
		}
		p.outcome.postponed = true
	} else if !p.facts.later(p.decision) {
		return true, nil
	}
	at := p.decision.NotBefore
	p.outcome.until(at, "waits for its time, which comes at "+at.UTC().Format(time.RFC3339))
	return false, nil
}

// postponed reports whether the cloud has moved the deadline away from a node
// whose drain had begun, so far that it would not have begun yet.
func (f *facts) postponed(d policy.Decision) bool {
	return f.begun(d) && d.NotBefore.After(f.now) && d.Deadline != nil && f.was.Deadline != nil &&
		d.Deadline.Time.After(f.was.Deadline.Time.Time)
}

// inTurn waits until policy lets one more of its nodes be drained.
func inTurn(ctx context.Context, p *pass) (bool, error) { return p.queue(ctx, p.budgetOf()) }

// terminations waits until one more node of the pool may be terminated.
func terminations(ctx context.Context, p *pass) (bool, error) {
	return p.queue(ctx, p.terminationsOf())
}

func (p *pass) queue(ctx context.Context, b *berth) (bool, error) {
	if b == nil || p.facts.begun(p.decision) {
		return true, nil
	}
	sentence, err := p.board(ctx, b)
	if err != nil || sentence == "" {
		return err == nil, err
	}
	p.outcome.stage = v1alpha1.PhaseQueued
	p.outcome.until(p.facts.now.Add(berthAgain), sentence)
	if d := p.decision.Deadline; d != nil && d.Time.Add(-policy.Lead).After(p.facts.now) {
		p.outcome.sooner(d.Time.Add(-policy.Lead)) // from then on it waits for nobody
	}
	return false, nil
}
