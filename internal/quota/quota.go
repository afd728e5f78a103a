// Package quota shares out the calls to a service that counts those of a whole
// account together: what is urgent goes first, and where the service throttles,
// everybody slows down. All operations of EC2 Auto Scaling draw on one such
// account of calls (Amazon EC2 Auto Scaling API Reference, "Request throttling").
package quota

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Priority is what a call is for; the lower goes first.
type Priority int

// The priorities.
const (
	Answer Priority = iota // ends a lifecycle action, or detaches an instance
	Extend                 // extends one
	Ask                    // reads
	priorities
)

// What New takes where it is not told. How many calls AWS lets through is not
// published; these are few of what others reported to get.
const (
	defaultRate  = 10
	defaultBurst = 30
)

const (
	// slowest is the share of the rate that throttling leaves at least.
	slowest = 20
	// sore is for how long after a call was throttled the rest get faster by little.
	sore = 30 * time.Second
	// tooLong is how far apart the less urgent are let through at most.
	tooLong = 5 * time.Second
)

// turn is somebody who waits.
type turn struct {
	since time.Time
	comes chan struct{}
}

// Quota lets calls through, so many a second. A nil Quota lets all through.
type Quota struct {
	full  float64 // calls a second
	burst float64

	mu      sync.Mutex
	rate    float64 // as it is now
	tokens  float64
	at      time.Time // when tokens was right
	halved  time.Time
	waiting [priorities][]*turn
	served  [priorities]time.Time // when one of them was last let through
	timer   *time.Timer
}

// New returns a Quota of so many calls a second, and at most burst at once. Zero
// is what suits Auto Scaling.
func New(perSecond float64, burst int) *Quota {
	if perSecond <= 0 {
		perSecond = defaultRate
	}
	if burst <= 0 {
		burst = defaultBurst
	}
	return &Quota{full: perSecond, rate: perSecond, burst: float64(burst), tokens: float64(burst), at: time.Now()}
}

// Wait returns nil once a call may be made, or the error of a context that ends
// before.
func (q *Quota) Wait(ctx context.Context, p Priority) error {
	if q == nil {
		return ctx.Err()
	}
	own := &turn{time.Now(), make(chan struct{})}
	q.mu.Lock()
	q.waiting[p] = append(q.waiting[p], own)
	q.grant()
	q.mu.Unlock()
	select {
	case <-own.comes:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting[p], own); i >= 0 {
		q.waiting[p] = slices.Delete(q.waiting[p], i, i+1)
	} else {
		q.tokens++ // it was its turn, and it does not want it any more
		q.grant()
	}
	return ctx.Err()
}

// Throttled says that a call was throttled: all go half as fast. Those that were
// on their way together count as one.
func (q *Quota) Throttled() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refill()
	q.tokens = min(q.tokens, 0)
	if now := time.Now(); now.Sub(q.halved) >= time.Second {
		q.rate, q.halved = max(q.rate/2, q.full/slowest), now
	}
}

// Passed says that a call was not throttled: all go a little faster, until they
// are as fast as they may be. Where one was throttled not long ago, what the service
// takes is about what it is asked now.
func (q *Quota) Passed() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refill()
	more := q.full / slowest
	if time.Since(q.halved) < sore {
		more /= 10
	}
	q.rate = min(q.full, q.rate+more)
}

// refill counts what has come in since.
func (q *Quota) refill() {
	now := time.Now()
	q.tokens = min(q.burst, q.tokens+now.Sub(q.at).Seconds()*q.rate)
	q.at = now
}

// grant lets through who waits, the most urgent first, and sees to it that it is
// called again when the next may go.
func (q *Quota) grant() {
	q.refill()
	for q.tokens >= 1 {
		next := q.next()
		if next == nil {
			return
		}
		q.tokens--
		close(next.comes)
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	if !slices.ContainsFunc(q.waiting[:], func(w []*turn) bool { return len(w) > 0 }) {
		return
	}
	wait := time.Duration((1-q.tokens)/q.rate*float64(time.Second)) + time.Millisecond
	q.timer = time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.grant()
	})
}

// next takes out who is to go next: the first of the most urgent, unless one of the
// less urgent has waited too long, and none like it has gone meanwhile. What answers
// is worth little where nothing can be asked.
func (q *Quota) next() *turn {
	chosen := -1
	for p, w := range q.waiting {
		switch {
		case len(w) == 0:
		case chosen < 0, time.Since(w[0].since) >= tooLong && time.Since(q.served[p]) >= tooLong:
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
