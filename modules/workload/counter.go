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
	Time  time.Time `json:"time"` // when it failed
	Kind  string    `json:"kind"`
	Error string    `json:"error"`
	// Took is how long after its beginning, in ms.
	Took int64 `json:"took"`
	// Reused says that the connection had served before. Many clients repeat
	// such a request by themselves where it may be repeated.
	Reused bool `json:"reused,omitempty"`
}

// request is one request and what became of it; Err is nil for a success.
type request struct {
	Began, Ended time.Time
	Reused       bool
	Err          error
}

// summary is what a load saw. Requests count from the first success on: those
// that began before it had ended are left out.
type summary struct {
	Began  time.Time `json:"began"`  // the first success; zero: there was none
	Ended  time.Time `json:"ended"`  // the last request
	Before int64     `json:"before"` // failures that do not count
	OK     int64     `json:"ok"`
	Failed int64     `json:"failed"`
	// OnReused counts those of the failures that were on a connection that had
	// served before.
	OnReused int64 `json:"onReused"`
	// Kinds counts failures by kind.
	Kinds map[string]int64 `json:"kinds"`
	// Buckets are the successes and the failures of each 100 ms since Began, by
	// when the request ended. What comes after an hour is in none.
	Buckets [][2]int64 `json:"buckets"`
	// Failures are the first thousand.
	Failures []failure `json:"failures"`
	// Connections counts those opened, failures to open them included.
	Connections int64 `json:"connections"`
	// Slowest is how long the slowest success took, in ms.
	Slowest int64 `json:"slowest"`
	// Done says that the load ended as it should: this is all.
	Done bool `json:"done"`
}

// tally counts. It may be used by several goroutines.
type tally struct {
	mu sync.Mutex
	s  summary
}

func newTally() *tally {
	return &tally{s: summary{Kinds: map[string]int64{}, Buckets: [][2]int64{}, Failures: []failure{}}}
}

// count counts a request.
func (t *tally) count(r request) {
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
	kind := kindOf(r.Err)
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

// bucket needs the lock.
func (t *tally) bucket(at time.Time) *[2]int64 {
	n := int(at.Sub(t.s.Began) / bucketSize)
	if n >= maxBuckets {
		return &[2]int64{}
	}
	for len(t.s.Buckets) <= n {
		t.s.Buckets = append(t.s.Buckets, [2]int64{})
	}
	return &t.s.Buckets[n]
}

// begun reports whether there was a success.
func (t *tally) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.s.Began.IsZero()
}

func (t *tally) connected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Connections++
}

// look calls f with what was counted so far, which stands still meanwhile.
func (t *tally) look(f func(summary) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return f(t.s)
}
