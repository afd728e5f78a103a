package unheard

import (
	"context"
	"sync"
	"time"
)

const (
	// patience is what finding a cause may take.
	patience = 10 * time.Second
	// validity is for how long it counts for other records of the kind: when a
	// thousand nodes are reclaimed, AWS is asked once.
	validity = time.Minute
)

// causes remembers what was found, by kind.
type causes struct {
	find  Cause
	clock func() time.Time

	mu    sync.Mutex // held while AWS is asked: others want the same answer
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
