package interruption

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// barrierTimeout is how long a drain waits for other interrupted nodes, and how
	// long others wait for a node that cannot be cordoned.
	barrierTimeout = 15 * time.Second
	// barrierSettle is how long no other node may have been cordoned before the
	// barrier opens: notices of one reclaim arrive in batches. A single
	// Interruption does not wait.
	barrierSettle = 500 * time.Millisecond
	// barrierPoll and barrierPollPerNode set when a waiting drain looks again. The
	// interval grows with the number of nodes to bound the cost of polling.
	barrierPoll        = 50 * time.Millisecond
	barrierPollPerNode = time.Millisecond
	maxBarrierPoll     = time.Second
)

// cordonBarrier holds back evictions until every interrupted node is cordoned.
// Otherwise the scheduler would move pods from one interrupted node to another.
// The informer feeds it. It is best effort: after a restart the informer's first
// list fills it again.
type cordonBarrier struct {
	mu sync.Mutex
	// pending are Interruptions whose node may not be cordoned yet, with the time
	// at which others stop waiting for them.
	pending map[string]time.Time
	// waiting is since when the drain of an Interruption waits.
	waiting map[string]time.Time
	// cordoned is when this process cordoned the node of an Interruption.
	cordoned map[string]time.Time
}

// observe takes in a version of an Interruption; was is the version before, or nil.
func (b *cordonBarrier) observe(was, is client.Object, now time.Time) {
	in, ok := is.(*v1beta1.Interruption)
	switch {
	case !ok:
		return
	case notice.Finished(in):
		b.forget(in.Name)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !mayDrain(in) {
		delete(b.pending, in.Name)
		return
	}
	_, isCordoned := b.cordoned[in.Name] // another notice about such a node delays no drain
	if old, ok := was.(*v1beta1.Interruption); isCordoned || ok && !hasNews(old, in) {
		return
	}
	set(&b.pending, in.Name, now.Add(barrierTimeout))
}

// hasNews reports whether a new version makes it possible that the node is
// cordoned: another notice, or a person's approval.
func hasNews(was, is *v1beta1.Interruption) bool {
	return was.Generation != is.Generation || !mayDrain(was)
}

// setCordoned notes that this process cordoned the node of an Interruption.
func (b *cordonBarrier) setCordoned(name string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, name)
	set(&b.cordoned, name, at)
}

// cordonTime is when this process cordoned the node, or otherwise where it did not.
func (b *cordonBarrier) cordonTime(name string, otherwise time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, known := b.cordoned[name]; known {
		return at
	}
	return otherwise
}

// setRestored notes that the node of an Interruption is not cordoned any more.
func (b *cordonBarrier) setRestored(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.cordoned, name)
}

// forget drops an Interruption that is finished or deleted.
func (b *cordonBarrier) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, name)
	delete(b.waiting, name)
	delete(b.cordoned, name)
}

// wait returns how long the drain of an Interruption waits before it looks again;
// zero: the barrier is open. received is when its notice was received: a restart of
// this process does not start the timeout again. isCordoned reads the node cache.
func (b *cordonBarrier) wait(name string, received, now time.Time, isCordoned func(name string) (bool, error)) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since, known := b.waiting[name]
	if !known {
		since = now
		set(&b.waiting, name, now)
	}
	if received.Before(since) {
		since = received
	}
	left := since.Add(barrierTimeout).Sub(now)
	if left <= 0 {
		return 0, nil
	}
	pending, err := b.pendingBeside(name, now, isCordoned)
	if err != nil {
		return 0, err
	}
	if pending > 0 {
		return min(left, maxBarrierPoll, barrierPoll+time.Duration(pending)*barrierPollPerNode), nil
	}
	var settles time.Duration
	for other, at := range b.cordoned {
		if other != name {
			settles = max(settles, at.Add(barrierSettle).Sub(now))
		}
	}
	return min(left, settles), nil
}

// pendingBeside returns how many other Interruptions may have a node that is not
// cordoned; the first of them was checked. The caller holds the lock.
func (b *cordonBarrier) pendingBeside(name string, now time.Time, isCordoned func(name string) (bool, error)) (int, error) {
	for other, until := range b.pending {
		if other == name {
			continue
		}
		if !now.Before(until) {
			delete(b.pending, other)
			continue
		}
		done, err := isCordoned(other)
		if err != nil {
			return 0, err
		}
		if !done {
			return len(b.pending), nil
		}
		delete(b.pending, other)
	}
	return 0, nil
}

// mark cordons the node, or marks it so that the scheduler prefers others.
func (p *pass) mark(ctx context.Context, mark mutate.Mark) (bool, error) {
	over := p.facts.begun(p.decision) && !p.facts.now.Before(p.end()) // the node is restored, or about to be
	if node := p.facts.node; node != nil && !over {
		stale := p.nodeWrites.isStale(node.Name, node.ResourceVersion, p.facts.now)
		switch isCordoned := !p.barrier.cordonTime(p.facts.in.Name, time.Time{}).IsZero(); {
		case stale && mark == mutate.MarkInterrupted && isCordoned: // by this process
			p.outcome.requeueAt(p.facts.now.Add(requeueCache))
		case stale: // this process may just have restored it
			p.outcome.skipWrite = true
			p.outcome.wait(p.facts.now.Add(requeueCache), "waits for the cache of nodes")
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
	p.outcome.skipWrite = notice.IsFirm(p.decision.Deadline)
	p.outcome.wait(p.facts.now.Add(p.facts.barrierWait),
		fmt.Sprintf("waits up to %s for the other interrupted nodes to be cordoned", barrierTimeout))
	return false, nil
}
