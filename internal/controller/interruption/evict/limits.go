package evict

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// maxInFlight is how many requests may be in flight for all nodes. The API server queues
	// at most 300 requests of one client at the level of service accounts. It answers 429
	// beyond that (Kubernetes, "API Priority and Fairness").
	maxInFlight = 200
	// maxPerNamespace leaves slots to others if the webhook of one tenant takes 10 s.
	maxPerNamespace = 100
	// maxSlow bounds, for all nodes, the requests in flight for pods whose last request
	// timed out. They must not take the slots of other nodes.
	maxSlow = 16
)

// limits bound the requests in flight for all nodes together.
type limits struct {
	all, slow *semaphore.Weighted

	mu sync.Mutex
	// namespaces are those with requests in flight or waiting.
	namespaces map[string]*namespaceLimit
}

type namespaceLimit struct {
	slots    *semaphore.Weighted
	requests int
}

func newLimits() *limits {
	return &limits{all: semaphore.NewWeighted(maxInFlight), slow: semaphore.NewWeighted(maxSlow), namespaces: map[string]*namespaceLimit{}}
}

// acquire takes a slot of the node, of the pod's namespace, and of all requests. It waits for
// them in this order, so that a request that waits holds up no other node.
func (l *limits) acquire(ctx context.Context, node *semaphore.Weighted, r Request) (release func(), err error) {
	namespace := r.Verdict.Pod.Namespace
	slots := []*semaphore.Weighted{node, l.enter(namespace), l.all}
	if r.TimedOut {
		slots = []*semaphore.Weighted{node, l.slow}
	}
	taken := 0
	release = func() {
		for _, s := range slots[:taken] {
			s.Release(1)
		}
		l.leave(namespace)
	}
	for _, s := range slots {
		if err := s.Acquire(ctx, 1); err != nil {
			release()
			return nil, err
		}
		taken++
	}
	return release, nil
}

// enter returns the slots of a namespace, and keeps them until leave.
func (l *limits) enter(namespace string) *semaphore.Weighted {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.namespaces[namespace]
	if limit == nil {
		limit = &namespaceLimit{slots: semaphore.NewWeighted(maxPerNamespace)}
		l.namespaces[namespace] = limit
	}
	limit.requests++
	return limit.slots
}

func (l *limits) leave(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.namespaces[namespace]
	if limit.requests--; limit.requests == 0 {
		delete(l.namespaces, namespace)
	}
}
