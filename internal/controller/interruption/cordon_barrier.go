package interruption

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// barrierTimeout is how long a drain waits for other interrupted nodes, and how
	// long others wait for a node that cannot be cordoned.
	barrierTimeout = 15 * time.Second
	// barrierSettle is how long no other Interruption may have arrived before the
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
	// last is the latest arrival, other the latest one of another Interruption.
	last, other arrival
}

// arrival is when a notice about an Interruption arrived.
type arrival struct {
	name string
	at   time.Time
}

// observe takes in a version of an Interruption; was is the version before, or nil.
func (b *cordonBarrier) observe(was, is client.Object, now time.Time) {
	in, ok := is.(*v1alpha1.Interruption)
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
	if old, ok := was.(*v1alpha1.Interruption); ok && !hasNews(old, in) {
		return
	}
	if b.last.name != in.Name {
		b.other = b.last
	}
	b.last = arrival{in.Name, now}
	if _, done := b.cordoned[in.Name]; !done {
		set(&b.pending, in.Name, now.Add(barrierTimeout))
	}
}

// hasNews reports whether a new version makes it possible that the node is
// cordoned: another notice, or a person's approval.
func hasNews(was, is *v1alpha1.Interruption) bool {
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
	other := b.last
	if other.name == name {
		other = b.other
	}
	return max(0, min(left, other.at.Add(barrierSettle).Sub(now))), nil
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

// set writes to a map and makes it first where that is necessary.
func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
