package sqs

import (
	"context"
	"sync"
	"time"
)

const (
	// batchLinger is how long an entry waits for others to share its request. It must be
	// short compared with the visibility timeout, within which the request has to arrive.
	batchLinger = 10 * time.Millisecond
	// batcherDepth bounds the queued entries; receivers block beyond it.
	batcherDepth = 1000
	// batcherConcurrency bounds the requests in flight.
	batcherConcurrency = 8
)

// batcher collects entries from all receivers into batch requests and sends them in the
// background.
type batcher[E any] struct {
	in   chan E
	send func(context.Context, []E)
}

func newBatcher[E any](send func(context.Context, []E)) *batcher[E] {
	return &batcher[E]{in: make(chan E, batcherDepth), send: send}
}

// run sends until in is closed and drained and every request has returned.
func (b *batcher[E]) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	inFlight := make(chan struct{}, batcherConcurrency)
	for entry := range b.in {
		batch := b.collect(entry)
		inFlight <- struct{}{}
		group.Go(func() {
			defer func() { <-inFlight }()
			b.send(ctx, batch)
		})
	}
}

// collect returns a batch that starts with first: a full one, or what arrived within
// batchLinger.
func (b *batcher[E]) collect(first E) []E {
	batch := append(make([]E, 0, batchSize), first)
	timer := time.NewTimer(batchLinger)
	defer timer.Stop()
	for len(batch) < batchSize {
		select {
		case entry, open := <-b.in:
			if !open {
				return batch
			}
			batch = append(batch, entry)
		case <-timer.C:
			return batch
		}
	}
	return batch
}
