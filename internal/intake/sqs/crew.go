package sqs

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// crew is who receives: a few always, more while batches come back full. SQS
// hands out ten messages at a time, so how soon the last of a burst is heard
// depends on how many ask.
type crew struct {
	least, most int

	mu      sync.Mutex
	working int
	group   sync.WaitGroup
}

// grow adds one to the crew, unless it is at its most.
func (c *crew) grow(work func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.working < c.most {
		c.working++
		c.group.Go(work)
	}
}

// leave reports whether a member may go, who then has left.
func (c *crew) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.working <= c.least {
		return false
	}
	c.working--
	return true
}

// spare reports whether there are more than the least.
func (c *crew) spare() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working > c.least
}

// receive takes batches, one after the other, until ctx is done or the crew is
// larger than there is work for.
func (s *Source) receive(ctx context.Context) {
	pause := backoff{longest: longestPause}
	for ctx.Err() == nil {
		out, err := s.api.ReceiveMessage(ctx, s.request(), once)
		switch {
		case err == nil:
			pause.reset()
			s.reached(ctx)
			if len(out.Messages) == batchSize {
				s.crew.grow(func() { s.receive(ctx) })
			}
			s.takeOn(ctx, out.Messages)
		case ctx.Err() == nil:
			s.unreached(ctx, "receive", err)
		}
		if ctx.Err() == nil && (err != nil || len(out.Messages) == 0) && s.crew.leave() {
			log.FromContext(ctx).V(1).Info("receives with fewer")
			return
		}
		if err != nil {
			sleep.For(ctx, pause.next())
		}
	}
}

// mostBeside is how many full batches are in hand at the most beside those that receivers
// themselves have: a thousand messages, of a few KiB each.
const mostBeside = 100

// takeOn handles a batch; where it is full there are likely to be others, which are not to
// wait for what is to be done about these.
func (s *Source) takeOn(ctx context.Context, messages []types.Message) {
	if len(messages) == batchSize {
		select {
		case s.beside <- struct{}{}:
			s.crew.group.Go(func() {
				defer func() { <-s.beside }()
				s.handle(ctx, messages)
			})
			return
		default:
		}
	}
	s.handle(ctx, messages)
}

// outbox gathers what several receivers have to tell SQS into full batches, and
// sends them beside the receiving.
type outbox[E any] struct {
	in   chan E
	send func(context.Context, []E)
}

const (
	// linger is how long an entry waits for others to share a request with: not
	// long beside the visibility, within which it has to arrive.
	linger = 10 * time.Millisecond
	// outboxDepth bounds what waits to be sent; receivers wait beyond it.
	// outboxAbreast is how many requests are under way at the same time.
	outboxDepth   = 1000
	outboxAbreast = 8
)

func newOutbox[E any](send func(context.Context, []E)) *outbox[E] {
	return &outbox[E]{in: make(chan E, outboxDepth), send: send}
}

// run sends until the outbox is closed and empty, and the last request has been
// answered.
func (o *outbox[E]) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	abreast := make(chan struct{}, outboxAbreast)
	for entry := range o.in {
		batch := o.gather(entry)
		abreast <- struct{}{}
		group.Go(func() {
			defer func() { <-abreast }()
			o.send(ctx, batch)
		})
	}
}

// gather returns a batch that begins with an entry: a full one, or what came
// while it lingered.
func (o *outbox[E]) gather(first E) []E {
	batch := append(make([]E, 0, batchSize), first)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for len(batch) < batchSize {
		select {
		case entry, open := <-o.in:
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
