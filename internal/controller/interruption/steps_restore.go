package interruption

import (
	"context"
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// restoreNode makes a node that lives what it was. This includes the node of an instance
// that was stopped: it is not Ready until the instance starts again as the same node.
func restoreNode(ctx context.Context, p *pass) (bool, error) {
	node := p.facts.node
	if p.facts.nextIsDue(p.decision) {
		return true, nil
	}
	if err := p.replacer(p.facts).Release(ctx, p.facts.forCapacity(p.decision), p); err != nil || node == nil {
		return err == nil, err
	}
	if mutate.HasMark(node) && p.Live != nil { // else a person may have uncordoned it
		undone, err := mutate.UndoSurges(ctx, p.Client, p.Live, node.Name)
		if err != nil {
			return false, fmt.Errorf("returning surged pods to their ReplicaSets: %w", err)
		}
		p.outcome.SurgesUndone = undone
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

// release restores a node whose drain had begun, where the decision is now to leave it
// alone.
func release(ctx context.Context, p *pass) (bool, error) {
	if record.Begun(&p.facts.was).IsZero() && !record.Cordoned(&p.facts.was) && !p.facts.onlyMarked() {
		return true, nil
	}
	done, err := restoreNode(ctx, p)
	p.outcome.Released = err == nil
	return done, err
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
