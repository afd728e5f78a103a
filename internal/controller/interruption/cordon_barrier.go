package interruption

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// expected is when the drain of an Interruption begins that waits for its window. Windows of
	// several nodes open at the same time.
	expected map[string]time.Time
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
	old, ok := was.(*v1beta1.Interruption)
	if !mayDrain(in) && (!ok || !isAnswered(old, in)) {
		delete(b.pending, in.Name)
		return
	}
	_, isCordoned := b.cordoned[in.Name] // another notice about such a node delays no drain
	if isCordoned || ok && !hasNews(old, in) {
		return
	}
	set(&b.pending, in.Name, now.Add(barrierTimeout))
}

// expect notes when a drain begins that waits for its window; zero: it does not begin.
func (b *cordonBarrier) expect(name string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.IsZero() {
		delete(b.expected, name)
		delete(b.pending, name)
		return
	}
	set(&b.expected, name, at)
}

// begin notes that a drain begins, and that its node is about to be cordoned.
func (b *cordonBarrier) begin(name string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.expected, name)
	if _, known := b.pending[name]; !known {
		set(&b.pending, name, now.Add(barrierTimeout))
	}
}

// due moves drains whose window opens now to the pending ones. The caller holds the lock.
func (b *cordonBarrier) due(now time.Time) {
	for name, at := range b.expected {
		if !at.After(now.Add(barrierSettle)) {
			set(&b.pending, name, at.Add(barrierTimeout))
			delete(b.expected, name)
		}
	}
}

// hasNews reports whether a new version makes it possible that the node is
// cordoned: another notice, or a person's approval.
func hasNews(was, is *v1beta1.Interruption) bool {
	return was.Generation != is.Generation || !mayDrain(was)
}

// isAnswered reports whether a new version may have the approval that the Interruption waits for. The
// next pass decides: where it still waits, expect ends that others wait for it.
func isAnswered(was, is *v1beta1.Interruption) bool {
	return was.Generation != is.Generation && is.Status.Phase == v1beta1.PhaseAwaitingApproval
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
	delete(b.expected, name)
	delete(b.waiting, name)
	delete(b.cordoned, name)
}

// wait returns how long the drain of an Interruption waits before it looks again;
// zero: the barrier is open. isNew is set where it asks for the first time, and waits. received is when
// it began to wait at the latest: a restart of this process does not start the timeout again. isCordoned reads
// the node cache.
func (b *cordonBarrier) wait(name string, received, now time.Time, isCordoned func(name string) bool) (wait time.Duration, isNew bool) {
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
		return 0, false
	}
	b.due(now)
	if pending := b.pendingBeside(name, now, isCordoned); pending > 0 {
		return min(left, maxBarrierPoll, barrierPoll+time.Duration(pending)*barrierPollPerNode), !known
	}
	var settles time.Duration
	for other, at := range b.cordoned {
		if other != name {
			settles = max(settles, at.Add(barrierSettle).Sub(now))
		}
	}
	wait = min(left, settles)
	return wait, wait > 0 && !known
}

// pendingBeside returns how many other Interruptions may have a node that is not
// cordoned; the first of them was checked. The caller holds the lock.
func (b *cordonBarrier) pendingBeside(name string, now time.Time, isCordoned func(name string) bool) int {
	for other, until := range b.pending {
		if other == name {
			continue
		}
		if !now.Before(until) {
			delete(b.pending, other)
			continue
		}
		if !isCordoned(other) {
			return len(b.pending)
		}
		delete(b.pending, other)
	}
	return 0
}

// mark cordons the node, or marks it so that the scheduler prefers others.
func (p *pass) mark(ctx context.Context, mark mutate.Mark) (bool, error) {
	// The node is restored, or about to be; or it could not be cordoned, and lives.
	over := (p.facts.begun(p.decision) || p.facts.cordonRefused()) && !p.facts.now.Before(p.end())
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
				p.slots.Release(p.facts.in.Name) // others must not wait for a node that cannot be cordoned
				return false, err
			}
		}
	}
	p.outcome.Begun = p.facts.node != nil
	p.outcome.Marked, p.outcome.MarkedAt = mark, p.barrier.cordonTime(p.facts.in.Name, p.facts.now)
	return true, nil
}

// cordonRefused reports whether the API server refused to change the node.
func (f *facts) cordonRefused() bool {
	c := meta.FindStatusCondition(f.was.Conditions, v1beta1.ConditionRequestsAccepted)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1beta1.ReasonNodeWriteRefused
}

// patchMark patches the node with a mark and tells the barrier.
func (p *pass) patchMark(ctx context.Context, node *corev1.Node, mark mutate.Mark) error {
	if mark == mutate.MarkInterrupted && !mutate.IsMarked(node, mark) && !p.facts.cordonRefused() { // else others would wait for each try
		p.barrier.begin(p.facts.in.Name, p.facts.now)
	}
	changed, err := mutate.Apply(ctx, p.Client, node, mark, p.decision.Notice.Kind)
	if changed {
		p.nodeWrites.Replaced(node.Name, node.ResourceVersion, p.facts.now)
	}
	if err == nil && mark == mutate.MarkInterrupted && (changed || mutate.IsMarked(node, mark)) {
		p.barrier.setCordoned(p.facts.in.Name, p.barrier.cordonTime(p.facts.in.Name, p.Clock()))
	}
	return err
}

// waitsAtBarrier is what pods wait for at the barrier, until their last call.
const waitsAtBarrier = "the other interrupted nodes are not cordoned yet"

// awaitCordonBarrier waits until every interrupted node is cordoned.
func awaitCordonBarrier(_ context.Context, p *pass) (bool, error) {
	if p.facts.barrierWait == 0 || p.facts.podsKnown && p.plan.Empty() { // nothing is held back
		return true, nil
	}
	// Many Interruptions with a hard deadline wait at the same time. A write for each
	// would only say that it waits.
	p.outcome.skipWrite = notice.IsFirm(p.decision.Deadline)
	p.outcome.wait(p.facts.now.Add(p.facts.barrierWait),
		fmt.Sprintf("waits up to %s for the other interrupted nodes to be cordoned", barrierTimeout))
	return false, nil
}
