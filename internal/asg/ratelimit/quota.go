// Package ratelimit limits the rate of calls to a service that counts all calls of
// an account together. Urgent calls go first, and after throttling all callers
// slow down. All operations of EC2 Auto Scaling share one such limit (Amazon
// EC2 Auto Scaling API Reference, "Request throttling").
package ratelimit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Priority is the urgency of a call; lower values go first.
type Priority int

// The priorities.
const (
	Answer Priority = iota // completes a lifecycle action or detaches an instance
	Extend                 // extends a lifecycle action
	Ask                    // reads
	numPriorities
)

// The defaults of New. AWS does not publish its limit; these values are well
// below what users report.
const (
	defaultRate  = 10
	defaultBurst = 30
)

const (
	// minRateDivisor is the divisor of the full rate that gives the lowest rate after
	// throttling.
	minRateDivisor = 20
	// slowRecovery is how long after a throttled call the rate recovers more slowly.
	slowRecovery = 30 * time.Second
	// maxLowPriorityWait is the longest wait before a less urgent call is served anyway.
	maxLowPriorityWait = 5 * time.Second
)

// waiter is a caller in the queue.
type waiter struct {
	since   time.Time
	granted chan struct{}
}

// Limiter is a token bucket with priorities. A nil Limiter does not limit.
type Limiter struct {
	full  float64 // calls a second
	burst float64

	mu      sync.Mutex
	rate    float64 // as it is now
	tokens  float64
	at      time.Time // when tokens was computed
	halved  time.Time
	waiting [numPriorities][]*waiter
	served  [numPriorities]time.Time // when one of them was last let through
	timer   *time.Timer
}

// New returns a Limiter for that many calls per second and that burst. Zero
// values are the defaults for Auto Scaling.
func New(perSecond float64, burst int) *Limiter {
	if perSecond <= 0 {
		perSecond = defaultRate
	}
	if burst <= 0 {
		burst = defaultBurst
	}
	return &Limiter{full: perSecond, rate: perSecond, burst: float64(burst), tokens: float64(burst), at: time.Now()}
}

// Wait returns nil once a call may be made, or the error of a context that ends
// before.
func (q *Limiter) Wait(ctx context.Context, p Priority) error {
	if q == nil {
		return ctx.Err()
	}
	own := &waiter{time.Now(), make(chan struct{})}
	q.mu.Lock()
	q.waiting[p] = append(q.waiting[p], own)
	q.grant()
	q.mu.Unlock()
	select {
	case <-own.granted:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting[p], own); i >= 0 {
		q.waiting[p] = slices.Delete(q.waiting[p], i, i+1)
	} else {
		q.tokens++ // the token was granted, but the caller has left
		q.grant()
	}
	return ctx.Err()
}

// Throttled reports a throttled call: the rate is halved. Concurrent throttled
// calls within a second count as one.
func (q *Limiter) Throttled() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refill()
	q.tokens = min(q.tokens, 0)
	if now := time.Now(); now.Sub(q.halved) >= time.Second {
		q.rate, q.halved = max(q.rate/2, q.full/minRateDivisor), now
	}
}

// Passed reports a call that was not throttled: the rate grows slowly up to the
// full rate. Soon after throttling it grows even more slowly, because the
// current rate is near the service's limit.
func (q *Limiter) Passed() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refill()
	more := q.full / minRateDivisor
	if time.Since(q.halved) < slowRecovery {
		more /= 10
	}
	q.rate = min(q.full, q.rate+more)
}

// refill adds the tokens since the last refill.
func (q *Limiter) refill() {
	now := time.Now()
	q.tokens = min(q.burst, q.tokens+now.Sub(q.at).Seconds()*q.rate)
	q.at = now
}

// grant serves waiting callers, the most urgent first, and sets a timer for the
// next.
func (q *Limiter) grant() {
	q.refill()
	for q.tokens >= 1 {
		next := q.next()
		if next == nil {
			return
		}
		q.tokens--
		close(next.granted)
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	if !slices.ContainsFunc(q.waiting[:], func(w []*waiter) bool { return len(w) > 0 }) {
		return
	}
	wait := time.Duration((1-q.tokens)/q.rate*float64(time.Second)) + time.Millisecond
	q.timer = time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.grant()
	})
}

// next removes and returns the caller to serve: the first of the most urgent,
// unless a less urgent one has waited for maxLowPriorityWait and none of its priority was
// served meanwhile. Without reads the urgent calls would lack their input.
func (q *Limiter) next() *waiter {
	chosen := -1
	for p, w := range q.waiting {
		switch {
		case len(w) == 0:
		case chosen < 0, time.Since(w[0].since) >= maxLowPriorityWait && time.Since(q.served[p]) >= maxLowPriorityWait:
			chosen = p
		}
	}
	if chosen < 0 {
		return nil
	}
	first := q.waiting[chosen][0]
	q.waiting[chosen], q.served[chosen] = q.waiting[chosen][1:], time.Now()
	return first
}
