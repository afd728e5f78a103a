package interruption

import (
	"context"
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// restoreNode restores a node that still exists to its state before the mark. This includes the node
// of an instance that was stopped: it is not Ready until the instance starts again as the same node.
func restoreNode(ctx context.Context, p *pass) (bool, error) {
	node := p.facts.node
	if p.facts.nextIsDue(p.decision) {
		return true, nil
	}
	if err := p.undoDrain(ctx); err != nil || node == nil {
		return err == nil, err
	}
	p.barrier.setRestored(p.facts.in.Name)
	changed, err := mutate.Restore(ctx, p.Client, node)
	if err != nil {
		return false, err
	}
	if changed {
		p.nodeWrites.Replaced(node.Name, node.ResourceVersion, p.facts.now)
	}
	p.outcome.Restored = changed
	return true, nil
}

// undoDrain releases the replacement, and returns surged pods to their ReplicaSets.
func (p *pass) undoDrain(ctx context.Context) (err error) {
	if err := p.replacer(p.facts).Release(ctx, p.facts.forCapacity(p.decision), p); err != nil {
		return err
	}
	if node := p.facts.node; node != nil && mutate.HasMark(node) && p.Live != nil { // else a person may have uncordoned it
		if p.outcome.SurgesUndone, err = mutate.UndoSurges(ctx, p.Client, p.Live, node.Name); err != nil {
			return fmt.Errorf("returning surged pods to their ReplicaSets: %w", err)
		}
	}
	return nil
}

// endDrain ends a drain where the decision is now only to cordon: no pod has to leave.
func endDrain(ctx context.Context, p *pass) (bool, error) {
	if record.Begun(&p.facts.was).IsZero() {
		return true, nil
	}
	err := p.undoDrain(ctx)
	p.outcome.Released = err == nil
	return err == nil, err
}

// release restores a node whose drain had begun, where the decision is now to leave it
// alone.
func release(ctx context.Context, p *pass) (bool, error) {
	if record.Begun(&p.facts.was).IsZero() && !record.Cordoned(&p.facts.was) && !p.facts.onlyMarked() && !p.leavesMark() {
		return true, nil
	}
	done, err := restoreNode(ctx, p)
	p.outcome.Released = err == nil
	return done, err
}

// leavesMark reports whether the node is marked as at risk, and the decision is to do nothing.
func (p *pass) leavesMark() bool {
	return p.decision.Action == v1beta1.ActionIgnore && record.HasWork(&p.facts.was)
}

// nextIsDue reports whether another notice applies whose drain begins at once: a node that
// is restored in between would get new pods.
func (f *facts) nextIsDue(d policy.Decision) bool {
	if f.node == nil || d.Withdrawn || !f.otherNoticeApplies(d) {
		return false
	}
	facts := f.forPolicy()
	facts.Answered = append(slices.Clone(facts.Answered), d.Notice.ID)
	next, ok := policy.Decide(facts)
	return ok && record.Drains(next.Action) && !next.NotBefore.After(f.now) && !next.AwaitsApproval
}

// onlyMarked reports whether the node is cordoned and the status does not say so: the
// process stopped between the two writes.
func (f *facts) onlyMarked() bool {
	return f.node != nil && mutate.IsMarked(f.node, mutate.MarkInterrupted) && record.Begun(&f.was).IsZero() && !record.Cordoned(&f.was)
}
