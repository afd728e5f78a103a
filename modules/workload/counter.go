package main

import (
	"sync"
	"time"
)

const (
	bucketSize = 100 * time.Millisecond
	maxBuckets = 36_000 // an hour
	maxLogged  = 1_000
)

// failure is one request that failed.
type failure struct {
	Time  time.Time `json:"time"` // time of the failure
	Kind  string    `json:"kind"`
	Error string    `json:"error"`
	// Took is the time from its start, in ms.
	Took int64 `json:"took"`
	// Reused means that the connection was used before. Many clients automatically
	// retry an idempotent request in that case.
	Reused bool `json:"reused,omitempty"`
}

// request is the result of one request; Err is nil for a success.
type request struct {
	Began, Ended time.Time
	Reused       bool
	Err          error
}

// summary is the result of a load. It starts with the first success: requests that
// began before its end do not count.
type summary struct {
	Began  time.Time `json:"began"`  // the first success; zero if there was none
	Ended  time.Time `json:"ended"`  // the last request
	Before int64     `json:"before"` // failures before the first success
	OK     int64     `json:"ok"`
	Failed int64     `json:"failed"`
	// OnReused is the number of failures on connections that were used before.
	OnReused int64 `json:"onReused"`
	// Kinds are the numbers of failures by kind.
	Kinds map[string]int64 `json:"kinds"`
	// Buckets are the numbers of successes and failures per 100 ms since Began, by
	// the end of the request. Requests after an hour are in no bucket.
	Buckets [][2]int64 `json:"buckets"`
	// Failures are the first thousand failures.
	Failures []failure `json:"failures"`
	// Connections is the number of connection attempts.
	Connections int64 `json:"connections"`
	// Slowest is the duration of the slowest success, in ms.
	Slowest int64 `json:"slowest"`
	// Done means that the load ended normally and the summary is complete.
	Done bool `json:"done"`
}

// counter counts requests. It is safe for concurrent use.
type counter struct {
	mu sync.Mutex
	s  summary
}

func newCounter() *counter {
	return &counter{s: summary{Kinds: map[string]int64{}, Buckets: [][2]int64{}, Failures: []failure{}}}
}

// count counts a request.
func (t *counter) count(r request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s.Began.IsZero() || r.Began.Before(t.s.Began) {
		switch {
		case r.Err != nil:
			t.s.Before++
		case t.s.Began.IsZero():
			t.s.Began = r.Ended.UTC()
		}
		return
	}
	t.s.Ended = r.Ended.UTC()
	took := r.Ended.Sub(r.Began).Milliseconds()
	if r.Err == nil {
		t.s.OK++
		t.s.Slowest = max(t.s.Slowest, took)
		t.bucket(r.Ended)[0]++
		return
	}
	t.s.Failed++
	t.bucket(r.Ended)[1]++
	kind := failureKind(r.Err)
	t.s.Kinds[kind]++
	if r.Reused {
		t.s.OnReused++
	}
	if len(t.s.Failures) < maxLogged {
		t.s.Failures = append(t.s.Failures, failure{
			Time: r.Ended.UTC(), Kind: kind, Error: r.Err.Error(), Took: took, Reused: r.Reused,
		})
	}
}

// bucket requires the lock.
func (t *counter) bucket(at time.Time) *[2]int64 {
	n := int(at.Sub(t.s.Began) / bucketSize)
	if n >= maxBuckets {
		return &[2]int64{}
	}
	for len(t.s.Buckets) <= n {
		t.s.Buckets = append(t.s.Buckets, [2]int64{})
	}
	return &t.s.Buckets[n]
}

// started reports whether there was a success.
func (t *counter) started() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.s.Began.IsZero()
}

func (t *counter) connected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Connections++
}

// withSummary calls f with the current summary while it holds the lock.
func (t *counter) withSummary(f func(summary) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return f(t.s)
}
