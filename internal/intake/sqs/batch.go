package sqs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// Values of the metrics label "outcome", beside those of intake.Outcome.
const (
	outcomeIgnored    = "ofNoConcern"
	outcomeUnreadable = "unreadable"
	outcomeFailed     = "failed"
	outcomeProbe      = "probe"
)

const (
	// attemptTime is the timeout of one attempt to record, recordPause the longest
	// backoff between two.
	attemptTime = 8 * time.Second
	recordPause = 2 * time.Second
	// stopGrace is how long recording may continue after Run must stop.
	stopGrace = 3 * time.Second
	// maxHold is how long a batch stays in flight while the API server rejects its writes.
	// Returning messages to the queue costs receives, and the redrive policy moves a
	// message without receives left to the dead-letter queue.
	maxHold = 25 * time.Second
)

// disposition is what happens to a message after it was processed.
type disposition struct {
	// outcome is the value of the metrics label.
	outcome string
	// ack deletes the message.
	ack bool
	// retryIn hides the message for this long; nil leaves its visibility timeout.
	retryIn *time.Duration
}

// message is a received message and its decoded content.
type message struct {
	*types.Message
	decoded
	err error // why it cannot be decoded
}

func (m *message) handle() string { return aws.ToString(m.ReceiptHandle) }

// dropBody keeps what unreadable messages quote, so that messages which wait for the API server do
// not hold their bodies.
func (m *message) dropBody() {
	if body := aws.ToString(m.Body); len(body) > maxQuote {
		m.Body = aws.String(strings.Clone(body[:maxQuote+1]))
	}
}

// handle processes the messages of a batch concurrently, so that none waits for the write
// of another, then acknowledges or hides each.
func (s *Source) handle(ctx context.Context, received []types.Message) {
	if len(received) == 0 {
		return
	}
	work, release := s.workContext(ctx)
	defer release()
	renewed := s.renewVisibility(work, received)
	messages, results := make([]message, len(received)), make([]disposition, len(received))
	var group sync.WaitGroup
	for i := range received {
		m := &messages[i]
		m.Message = &received[i]
		m.decoded, m.err = decode(aws.ToString(m.Body))
		m.dropBody()
		if m.scaling != "" && s.o.GroupNews != nil {
			s.o.GroupNews(m.scaling)
		}
		if m.err != nil || m.unconcern != "" {
			results[i] = s.process(work, m) // needs no request: not worth a goroutine
			continue
		}
		group.Go(func() { results[i] = s.process(work, m) })
	}
	group.Wait()
	release()
	<-renewed // a late renewal would undo the visibility set below
	for i := range results {
		if ctx.Err() != nil && results[i].outcome == outcomeFailed {
			results[i].retryIn = new(time.Duration) // shutting down: let another replica take it now
		}
		s.o.Metrics.Received(Name, results[i].outcome)
		s.finish(&messages[i], results[i])
	}
}

// workContext returns the context for processing received messages. It outlives ctx by
// stopGrace, and ends after maxHold.
func (s *Source) workContext(ctx context.Context) (context.Context, func()) {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxHold)
	unhook := context.AfterFunc(ctx, func() {
		sleep.For(work, stopGrace)
		cancel()
	})
	return work, func() { unhook(); cancel() }
}

// process makes a message durable and returns what happens to it.
func (s *Source) process(ctx context.Context, m *message) disposition {
	d := &m.decoded
	switch {
	case m.err != nil:
		return s.leaveUnreadable(ctx, m.Message, m.err)
	case d.unconcern != "":
		s.logIgnored(ctx, d)
		return disposition{outcome: outcomeIgnored, ack: true}
	}
	notices, parts := s.resolve(ctx, m)
	for _, n := range notices {
		parts = append(parts, s.recordNotice(ctx, m.Message, n))
	}
	parts = append(parts, s.recordOthers(ctx, d)...)
	if len(parts) == 0 { // a group without instances
		return disposition{outcome: string(intake.Foreign), ack: true}
	}
	return worst(parts)
}

// worst combines the dispositions of the parts of a message: it is deleted only if every
// part may be.
func worst(parts []disposition) disposition {
	for _, p := range parts {
		if !p.ack {
			return p
		}
	}
	return parts[0]
}

// recordNotice records one notice of a message.
func (s *Source) recordNotice(ctx context.Context, m *types.Message, n notice.Notice) disposition {
	outcome, err := s.recordWithRetry(ctx, notice.IsFirm(n.Deadline), func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Record(ctx, n) })
	switch {
	case errors.Is(err, intake.ErrRefused):
		return s.leaveUnreadable(ctx, m, unreadable("record", "%v", err))
	case err != nil:
		return disposition{outcome: outcomeFailed}
	case outcome.Final():
		return disposition{outcome: string(outcome), ack: true}
	}
	return s.awaitNode(ctx, m, &n)
}

// recordWithRetry retries write until it succeeds, is refused, or ctx is done. Retrying
// here, instead of returning the message to the queue, saves receives (see maxHold).
func (s *Source) recordWithRetry(ctx context.Context, urgent bool, write func(context.Context) (intake.Outcome, error)) (intake.Outcome, error) {
	pause := backoff{longest: recordPause}
	for {
		if err := s.writes.acquire(ctx, urgent); err != nil {
			return "", err
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		outcome, err := write(attempt)
		cancel()
		s.writes.release()
		if err == nil || errors.Is(err, intake.ErrRefused) {
			return outcome, err
		}
		s.logThrottled(ctx, "failed", "cannot record notice, retrying", "error", err.Error())
		if !sleep.For(ctx, pause.next()) {
			return "", err
		}
	}
}
