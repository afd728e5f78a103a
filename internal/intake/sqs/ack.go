package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// responseTime is the timeout for deleting or hiding one batch, retries included.
	responseTime = 5 * time.Second
	// deleteTries is how often a delete is tried. A message that is still not deleted
	// becomes visible again and is then found to be a repeat.
	deleteTries = 3
)

// finish queues the delete or the visibility change of a processed message. Batchers send
// them in the background.
func (s *Source) finish(m *message, d disposition) {
	switch {
	case d.ack:
		s.deletes.in <- m.handle()
	case d.retryIn != nil:
		if d.outcome == string(intake.NotYetKnown) && m.isRetriable() {
			s.pending.add(m, s.o.Clock().Add(*d.retryIn))
		}
		s.visibility.in <- visibilityChange{handle: m.handle(), timeout: *d.retryIn}
	}
}

// acknowledge deletes messages. A batch request can fail for single entries.
func (s *Source) acknowledge(ctx context.Context, handles []string) {
	ctx, cancel := context.WithTimeout(ctx, responseTime)
	defer cancel()
	var entries []types.DeleteMessageBatchRequestEntry
	for i, handle := range handles {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &handle})
	}
	pause := backoff{longest: time.Second}
	for try := 1; len(entries) > 0; try++ {
		out, err := s.api.DeleteMessageBatch(ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: aws.String(s.queue), Entries: entries}, once)
		switch {
		case err != nil:
			s.failed(ctx, "acknowledge", "sqs:DeleteMessage", err)
		case len(out.Failed) == 0:
			return
		default:
			s.failedEntries(ctx, "acknowledge", out.Failed)
			entries = notDeleted(entries, out.Failed)
		}
		if try == deleteTries || !sleep.For(ctx, pause.next()) {
			return
		}
	}
}

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
	var requests errgroup.Group
	requests.SetLimit(batcherConcurrency)
	for entry := range b.in {
		batch := b.collect(entry)
		requests.Go(func() error {
			b.send(ctx, batch)
			return nil
		})
	}
	_ = requests.Wait() // send logs errors
}

// collect returns a batch that starts with first: a full one, or what arrived within
// batchLinger.
func (b *batcher[E]) collect(first E) []E {
	batch := append(make([]E, 0, batchSize), first)
	lingered := time.After(batchLinger)
	for len(batch) < batchSize {
		select {
		case entry, open := <-b.in:
			if !open {
				return batch
			}
			batch = append(batch, entry)
		case <-lingered:
			return batch
		}
	}
	return batch
}
