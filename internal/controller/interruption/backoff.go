package interruption

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
)

// The backoff of passes that fail, and of requests for a pod that fail. For about two minutes it is short,
// since most faults are over by then and a spot instance has no more time. Later it is one try a minute.
const (
	firstBackoff   = 100 * time.Millisecond
	maxBackoff     = 5 * time.Second
	shortBackoffs  = 28
	longestBackoff = time.Minute
	// eventBackoff bounds the wait of an Interruption that moves pods, where a watch requests a pass;
	// longEventBackoff does after shortBackoffs failures.
	eventBackoff     = 2 * time.Second
	longEventBackoff = 10 * time.Second
	// freePodTries are the requests for a pod that do not wait: most failures come from a stale cache.
	freePodTries = 5
	// hooksItem represents the hooks among the items of an Interruption. It is no UID of a pod.
	hooksItem types.UID = "hooks"
)

// backoffAfter is how long to wait after a number of failures.
func backoffAfter(failures int) time.Duration {
	if more := failures - shortBackoffs; more > 0 {
		return min(longestBackoff, maxBackoff<<min(more, 10))
	}
	return min(maxBackoff, firstBackoff<<min(max(failures-1, 0), 10))
}

// backoff is the backoff of an Interruption whose passes fail. It holds also for passes that a watch
// requests: otherwise two requests of a pass, of which one is refused, would repeat each other at once. It
// does not pass the next last call of a pod, or the end of the instance. It has no rate limit for all
// Interruptions together, which would hold up those whose deadline is next.
type backoff struct {
	clock func() time.Time

	mu sync.Mutex
	// underway is what the Interruptions wait for. A pass corrects it.
	underway map[string]underway
	failing  map[string]failingPasses
	pods     map[string]map[types.UID]failingPod
}

// underway is whether an Interruption moves pods, and its next last call of a pod, or end of the instance.
type underway struct {
	drains bool
	due    time.Time
}

// failingPasses are passes that failed, with less than two minutes between them.
type failingPasses struct {
	count       int
	tried, next time.Time
	// generation is that of the Interruption: a new notice does not wait.
	generation int64
}

// failingPod is a pod for which consecutive requests failed, or the hooks that cannot be started.
type failingPod struct {
	count       int
	tried, next time.Time
	cause       v1beta1.PodReason
	why         string
}

func newBackoff(clock func() time.Time) *backoff {
	return &backoff{clock: clock}
}

// When returns how long to wait before the next try. It is a [workqueue.TypedRateLimiter].
func (b *backoff) When(r reconcile.Request) time.Duration {
	return max(b.left(r.Name), firstBackoff)
}

// Forget does nothing: a pass whose error is nil may have failed too. See [backoff.succeeded].
func (b *backoff) Forget(reconcile.Request) {}

// NumRequeues is how many passes have failed.
func (b *backoff) NumRequeues(r reconcile.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing[r.Name].count
}

// left is how long the next try of an Interruption waits.
func (b *backoff) left(name string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, failing := b.failing[name]
	if !failing {
		return 0
	}
	return earlier(f.next, b.underway[name].due, f.tried).Sub(b.clock())
}

// leftOfEvent is how long a pass waits that a watch has requested.
func (b *backoff) leftOfEvent(name string, generation int64) time.Duration {
	left := b.left(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.failing[name]
	if f.generation != generation {
		return 0
	}
	if b.underway[name].drains {
		wait := eventBackoff
		if f.count > shortBackoffs {
			wait = longEventBackoff
		}
		left = min(left, f.tried.Add(wait).Sub(b.clock()))
	}
	return left
}

// earlier is the next try, or a date that comes before it and after the last try.
func earlier(next, due, tried time.Time) time.Time {
	if due.After(tried) && due.Before(next) {
		return due
	}
	return next
}

// failed notes that a pass failed.
func (b *backoff) failed(name string, generation int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.failing[name]
	if f.generation != generation {
		f = failingPasses{generation: generation}
	}
	f.count++
	f.tried = b.clock()
	f.next = f.tried.Add(backoffAfter(f.count))
	set(&b.failing, name, f)
}

// succeeded notes that a pass did not fail. The next pass does not wait. Failures of the last two minutes count on:
// two passes that undo each other's work would repeat each other at once, if one of them always fails.
func (b *backoff) succeeded(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, failing := b.failing[name]
	switch now := b.clock(); {
	case !failing:
	case now.Sub(f.tried) >= 2*longestBackoff:
		delete(b.failing, name)
	default:
		f.next = now
		b.failing[name] = f
	}
}

// forget frees the memory for an Interruption.
func (b *backoff) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failing, name)
	delete(b.underway, name)
	delete(b.pods, name)
}

// setUnderway notes what an Interruption waits for; due is zero: for no date.
func (b *backoff) setUnderway(name string, drains bool, due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !drains && due.IsZero() {
		delete(b.underway, name)
		return
	}
	set(&b.underway, name, underway{drains, due})
}

// notePod notes the result of a request for a pod.
func (b *backoff) notePod(name string, r evict.Result) {
	if r.Evicted {
		b.itemSucceeded(name, r.Verdict.Pod.UID)
	} else {
		b.itemFailed(name, r.Verdict.Pod.UID, r.RetryAfter, r.Cause, r.Reason)
	}
}

// itemSucceeded notes that the work for one item, a pod or hooksItem, did not fail.
func (b *backoff) itemSucceeded(name string, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods[name], uid)
}

// itemFailed notes that the work for one item failed. The next try waits at least retryAfter.
func (b *backoff) itemFailed(name string, uid types.UID, retryAfter time.Duration, cause v1beta1.PodReason, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.pods[name][uid]
	now := b.clock()
	f.count, f.tried, f.next, f.cause, f.why = f.count+1, now, now.Add(max(retryAfter, backoffAfter(f.count+1))), cause, why
	if b.pods[name] == nil {
		set(&b.pods, name, map[types.UID]failingPod{})
	}
	b.pods[name][uid] = f
}

// waitsFor returns when to send the next request for a pod, and why the last one failed; zero: now. The
// last call of the pod is a reason to try again.
func (b *backoff) waitsFor(name string, pod types.UID, lastCall time.Time) (at time.Time, cause v1beta1.PodReason, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, f := b.clock(), b.pods[name][pod]
	next := earlier(f.next, lastCall, f.tried)
	if f.count < freePodTries || !now.Before(next) {
		return time.Time{}, "", ""
	}
	return next, f.cause, f.why
}
