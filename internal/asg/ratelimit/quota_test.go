package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
)

// line starts many concurrent waiters and returns the order in which they were
// served.
type line struct {
	mu    sync.Mutex
	group sync.WaitGroup
	let   []string
}

func (l *line) join(t *testing.T, q *ratelimit.Limiter, p ratelimit.Priority, name string) {
	l.group.Go(func() {
		if err := q.Wait(t.Context(), p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.let = append(l.let, name)
	})
	synctest.Wait()
}

func TestUrgentCallsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l, began := ratelimit.New(2, 1), line{}, time.Now()
		l.join(t, q, ratelimit.Ask, "first")
		for i := range 2 {
			l.join(t, q, ratelimit.Ask, fmt.Sprintf("ask %d", i))
			l.join(t, q, ratelimit.Extend, fmt.Sprintf("extend %d", i))
			l.join(t, q, ratelimit.Answer, fmt.Sprintf("answer %d", i))
		}
		l.group.Wait()
		if got, want := strings.Join(l.let, ", "), "first, answer 0, answer 1, extend 0, extend 1, ask 0, ask 1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if took := time.Since(began); took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("six calls at two a second took %s", took)
		}
	})
}

func TestNoCallStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := ratelimit.New(1, 1), line{}
		l.join(t, q, ratelimit.Ask, "first")
		l.join(t, q, ratelimit.Ask, "ask")
		for i := range 9 {
			l.join(t, q, ratelimit.Answer, fmt.Sprint(i))
			if i == 4 {
				l.join(t, q, ratelimit.Extend, "extend")
			}
		}
		l.group.Wait()
		if got, want := strings.Join(l.let, ", "), "first, 0, 1, 2, 3, ask, extend, 4, 5, 6, 7, 8"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestThrottlingSlowsAllCallsTemporarily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ratelimit.New(10, 10)
		next := func() time.Duration {
			began := time.Now()
			if err := q.Wait(t.Context(), ratelimit.Ask); err != nil {
				t.Fatal(err)
			}
			return time.Since(began).Round(100 * time.Millisecond)
		}
		if took := next(); took != 0 {
			t.Errorf("waited %s for nothing", took)
		}
		for range 5 {
			q.Throttled() // five calls that were made at once
		}
		if took := next(); took != 200*time.Millisecond {
			t.Errorf("waited %s at half the rate", took)
		}
		for range 8 {
			time.Sleep(time.Second) // fake time
			q.Throttled()
		}
		if took := next(); took != 2*time.Second {
			t.Errorf("waited %s at the slowest", took)
		}
		for range 20 {
			q.Passed()
		}
		if took := next(); took < 500*time.Millisecond {
			t.Errorf("waited %s so soon after calls were throttled", took)
		}
		time.Sleep(30 * time.Second)
		for range 20 {
			q.Passed()
		}
		for range 10 { // what has come in meanwhile
			next()
		}
		if took := next(); took != 100*time.Millisecond {
			t.Errorf("waited %s when it had passed", took)
		}
	})
}

func TestCancelledCallUsesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, l := ratelimit.New(1, 1), line{}
		l.join(t, q, ratelimit.Ask, "first")
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := q.Wait(ctx, ratelimit.Answer); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		began := time.Now()
		l.join(t, q, ratelimit.Ask, "second")
		l.group.Wait()
		if took := time.Since(began).Round(100 * time.Millisecond); took != 500*time.Millisecond || !slices.Equal(l.let, []string{"first", "second"}) {
			t.Errorf("%v after %s", l.let, took)
		}
	})
}

func TestWithoutQuota(t *testing.T) {
	var q *ratelimit.Limiter
	for range 1000 {
		if err := q.Wait(t.Context(), ratelimit.Ask); err != nil {
			t.Fatal(err)
		}
	}
	q.Throttled()
	q.Passed()
}
