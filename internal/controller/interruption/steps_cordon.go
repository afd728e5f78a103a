package interruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
)

// markAtRisk marks the node so that the scheduler prefers others.
func markAtRisk(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, mutate.MarkAtRisk) }

// markInterrupted cordons the node.
func markInterrupted(ctx context.Context, p *pass) (bool, error) {
	return p.mark(ctx, mutate.MarkInterrupted)
}

func (p *pass) mark(ctx context.Context, mark mutate.Mark) (bool, error) {
	over := p.facts.begun(p.decision) && !p.facts.now.Before(p.end()) // the node is restored, or about to be
	if node := p.facts.node; node != nil && !over {
		stale := p.nodeWrites.isStale(node.Name, node.ResourceVersion, p.facts.now)
		switch isCordoned := !p.barrier.cordonTime(p.facts.in.Name, time.Time{}).IsZero(); {
		case stale && mark == mutate.MarkInterrupted && isCordoned: // by this process
			p.outcome.requeueAt(p.facts.now.Add(staleCacheRequeue))
		case stale: // this process may just have restored it
			p.outcome.skipWrite = true
			p.outcome.wait(p.facts.now.Add(staleCacheRequeue), "waits for the cache of nodes")
			return false, nil
		default:
			if err := p.patchMark(ctx, node, mark); err != nil {
				return false, err
			}
		}
	}
	p.outcome.Marked, p.outcome.MarkedAt = mark, p.barrier.cordonTime(p.facts.in.Name, p.facts.now)
	return true, nil
}

// patchMark patches the node with a mark and tells the barrier.
func (p *pass) patchMark(ctx context.Context, node *corev1.Node, mark mutate.Mark) error {
	changed, err := mutate.Apply(ctx, p.Client, node, mark, p.decision.Notice.Kind)
	if changed {
		p.nodeWrites.Replaced(node.Name, node.ResourceVersion, p.facts.now)
	}
	if err == nil && mark == mutate.MarkInterrupted && (changed || mutate.IsMarked(node, mark)) {
		p.barrier.setCordoned(p.facts.in.Name, p.barrier.cordonTime(p.facts.in.Name, p.Clock()))
	}
	return err
}

// awaitCordonBarrier waits until every interrupted node is cordoned.
func awaitCordonBarrier(_ context.Context, p *pass) (bool, error) {
	if p.facts.barrierWait == 0 {
		return true, nil
	}
	// Many Interruptions with a hard deadline wait at the same time. A write for each
	// would only say that it waits.
	p.outcome.skipWrite = isHard(&p.decision)
	p.outcome.wait(p.facts.now.Add(p.facts.barrierWait),
		fmt.Sprintf("waits up to %s for the other interrupted nodes to be cordoned", barrierTimeout))
	return false, nil
}
