package sqs

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// busyBatch is the batch size from which the queue probably holds more. A full batch
	// is no precondition: SQS may return fewer messages than it has (SQS API Reference,
	// ReceiveMessage, MaxNumberOfMessages).
	busyBatch = batchSize / 2
	// maxBackgroundBatches bounds the batches that are handled while their receiver
	// receives again: a thousand messages of a few KiB each.
	maxBackgroundBatches = 100
)

// receiverPool counts the receivers: at least least, and up to most while batches are
// busy. SQS returns at most ten messages a call, so a burst needs concurrent receivers.
type receiverPool struct {
	least, most int

	mu      sync.Mutex
	running int
	group   sync.WaitGroup
}

// grow starts one more receiver, unless the pool is at its maximum.
func (p *receiverPool) grow(receive func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running < p.most {
		p.running++
		p.group.Go(receive)
	}
}

// shrink reports whether the calling receiver must stop; it then no longer counts.
func (p *receiverPool) shrink() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running <= p.least {
		return false
	}
	p.running--
	return true
}

// hasExtra reports whether more than the minimum run.
func (p *receiverPool) hasExtra() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running > p.least
}

// receive receives one batch after the other until ctx is done or the pool shrinks.
func (s *Source) receive(ctx context.Context) {
	pause := backoff{longest: longestPause}
	for ctx.Err() == nil {
		out, err := s.api.ReceiveMessage(ctx, s.request(), once)
		switch {
		case err == nil:
			pause.reset()
			s.reached(ctx)
			s.dispatch(ctx, out.Messages)
		case ctx.Err() == nil:
			s.unreached(ctx, "receive", err)
		}
		if ctx.Err() == nil && (err != nil || len(out.Messages) == 0) && s.receivers.shrink() {
			log.FromContext(ctx).V(1).Info("stopped an extra receiver")
			return
		}
		if err != nil {
			sleep.For(ctx, pause.next())
		}
	}
}

// dispatch handles a batch. A busy batch adds a receiver and is handled in the
// background, so that receiving goes on while its notices are recorded.
func (s *Source) dispatch(ctx context.Context, messages []types.Message) {
	if len(messages) >= busyBatch {
		s.receivers.grow(func() { s.receive(ctx) })
		select {
		case s.background <- struct{}{}:
			s.receivers.group.Go(func() {
				defer func() { <-s.background }()
				s.handle(ctx, messages)
			})
			return
		default: // too many already: let this receiver wait for its batch
		}
	}
	s.handle(ctx, messages)
}
