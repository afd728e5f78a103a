package sourcehealth

import (
	"context"
	"sync"
	"time"
)

const (
	// patience is the timeout of finding a cause.
	patience = 10 * time.Second
	// validity is how long a cause is reused for records of the same kind: when
	// a thousand nodes are reclaimed, AWS is asked once.
	validity = time.Minute
)

// causes caches the causes by kind.
type causes struct {
	find  Cause
	clock func() time.Time

	mu    sync.Mutex // held during AWS calls: concurrent callers need the same result
	found map[string]cause
}

type cause struct {
	at              time.Time
	because, advice string
}

func newCauses(find Cause, clock func() time.Time) *causes {
	return &causes{find: find, clock: clock, found: map[string]cause{}}
}

func (c *causes) of(ctx context.Context, kind string) (because, advice string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.found[kind]; ok && c.clock().Sub(known.at) < validity {
		return known.because, known.advice
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	because, advice = c.find(ctx, kind)
	c.found[kind] = cause{at: c.clock(), because: because, advice: advice}
	return because, advice
}
