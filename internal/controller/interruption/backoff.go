package interruption

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxBackoff bounds the backoff of an Interruption whose passes fail, because its pods
// have last calls.
const maxBackoff = 5 * time.Second

// backoff is the backoff of an Interruption whose passes fail. It does not pass the next last
// call of a pod. It has no rate limit for all Interruptions together, which would hold up those
// whose deadline is next.
type backoff struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	clock func() time.Time

	mu sync.Mutex
	// lastCalls are the next last calls, by Interruption. A pass corrects them.
	lastCalls map[string]time.Time
}

func newBackoff(clock func() time.Time) *backoff {
	return &backoff{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, maxBackoff),
		clock:            clock,
	}
}

// When returns how long to wait before the next try.
func (b *backoff) When(r reconcile.Request) time.Duration {
	wait := b.TypedRateLimiter.When(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.lastCalls[r.Name].Sub(b.clock()); left > 0 {
		return min(wait, left)
	}
	return wait
}

// setLastCall notes the next last call of an Interruption; zero: it has none.
func (b *backoff) setLastCall(name string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.IsZero() {
		delete(b.lastCalls, name)
		return
	}
	set(&b.lastCalls, name, at)
}
