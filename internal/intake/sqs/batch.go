package sqs

import (
	"context"
	"errors"
	"slices"
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
	// stopGrace is how long recording may go on after Run is told to stop.
	stopGrace = 3 * time.Second

	// urgentRetry and softRetry hide a message whose instance has no Node yet; half of it
	// after the first receive. They can be long because retryPending notices the Node
	// within a second. The whole time is lost only if this process ends meanwhile, or if
	// the message names its instances by a group.
	urgentRetry = 30 * time.Second
	softRetry   = time.Minute
	// firstGroupRetry and longestGroupRetry bound how long a message is hidden while EC2
	// cannot be asked for its instances. Early retries are fast: a Capacity Block's warning
	// leaves ten minutes. Later ones are slow, so that an outage of half an hour does not
	// use up thirty receives.
	firstGroupRetry   = 10 * time.Second
	longestGroupRetry = 2 * time.Minute
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

// renewVisibility extends the visibility timeout of messages until ctx ends; the returned
// channel is closed once it has stopped. Renewal lets the timeout be short, so that a
// crash costs a spot warning little of its two minutes.
func (s *Source) renewVisibility(ctx context.Context, messages []types.Message) <-chan struct{} {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for sleep.For(ctx, s.o.Visibility/2) {
			var all []visibilityChange
			for _, m := range messages {
				all = append(all, visibilityChange{handle: aws.ToString(m.ReceiptHandle), timeout: s.o.Visibility})
			}
			s.changeVisibility(ctx, all)
		}
	}()
	return stopped
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
	notices, err := s.resolve(ctx, d)
	var parts []disposition
	switch {
	case err != nil:
		s.logThrottled(ctx, "unresolved", "cannot find the instances of a group, retrying", "error", err.Error(),
			"advice", "allow ec2:DescribeInstances")
		parts = []disposition{{outcome: outcomeFailed, retryIn: retryAfter(m.Message, firstGroupRetry, longestGroupRetry)}}
	case len(notices)+len(d.reports) == 0 && d.probe == nil:
		parts = []disposition{{outcome: outcomeIgnored, ack: true}} // a group without instances
	}
	for _, n := range notices {
		parts = append(parts, s.recordNotice(ctx, m.Message, n))
	}
	for _, r := range d.reports {
		parts = append(parts, s.recordOther(ctx, func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Report(ctx, r) }))
	}
	if d.probe != nil {
		parts = append(parts, s.recordOther(ctx, func(ctx context.Context) (intake.Outcome, error) {
			return outcomeProbe, s.recorder.Answer(ctx, *d.probe)
		}))
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
	outcome, err := s.recordWithRetry(ctx, isUrgent(&n), func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Record(ctx, n) })
	switch {
	case errors.Is(err, intake.ErrRefused):
		return s.leaveUnreadable(ctx, m, unreadable("record", "%v", err))
	case err != nil:
		return disposition{outcome: outcomeFailed}
	case outcome.Final():
		return disposition{outcome: string(outcome), ack: true}
	case s.isGivenUp(m, &n):
		s.logThrottled(ctx, "given up "+n.Kind, "dropped notice of an instance that is not of this cluster",
			"instance", n.InstanceID, "kind", n.Kind, "notice", n.ID, "receives", receives(m),
			"advice", "nothing, if the instance is of another cluster (give each cluster a queue of its own); else see why its Node has no spec.providerID that ends in the instance id")
		return disposition{outcome: string(intake.Foreign), ack: true}
	}
	retry := softRetry
	if isUrgent(&n) {
		retry = urgentRetry
	}
	if receives(m) == 1 {
		retry /= 2
	}
	return disposition{outcome: string(outcome), retryIn: &retry}
}

// isUrgent reports whether the notice has a hard deadline.
func isUrgent(n *notice.Notice) bool {
	return notice.IsFirm(n.Deadline)
}

// recordOther makes durable a part of a message that is not a notice of an instance.
func (s *Source) recordOther(ctx context.Context, write func(context.Context) (intake.Outcome, error)) disposition {
	outcome, err := s.recordWithRetry(ctx, false, write)
	switch {
	case err != nil:
		return disposition{outcome: outcomeFailed}
	case outcome == outcomeProbe:
		return disposition{outcome: outcomeProbe, ack: true}
	}
	return disposition{outcome: string(outcome), ack: outcome.Final()}
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

// isGivenUp reports whether an instance without a Node will stay without one: the message
// was received often enough, or a second time after the deadline.
func (s *Source) isGivenUp(m *types.Message, n *notice.Notice) bool {
	limit := s.o.MaxReceives
	if policy := s.redrive.Load(); policy != nil && policy.Target != "" {
		limit = min(limit, policy.Receives)
	}
	over := n.Deadline != nil && s.o.Clock().After(n.Deadline.Time.Time)
	return receives(m) >= limit || (over && receives(m) >= 2)
}

// prioritySemaphore bounds how many writes are in flight. While it is exhausted, urgent
// callers acquire it before all others, whatever batch they came in: a spot warning must
// not wait behind scheduled changes that are two weeks away.
type prioritySemaphore struct {
	mu   sync.Mutex
	free int
	// waiters are the blocked callers in order of arrival: urgent ones, then the others.
	waiters [2][]chan struct{}
}

func newPrioritySemaphore(size int) *prioritySemaphore { return &prioritySemaphore{free: size} }

// acquire blocks until a slot is free or ctx is done. After a nil error the caller must
// call release.
func (s *prioritySemaphore) acquire(ctx context.Context, urgent bool) error {
	queue := &s.waiters[1]
	if urgent {
		queue = &s.waiters[0]
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	*queue = append(*queue, ready)
	s.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(*queue, ready); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
	} else {
		s.releaseLocked() // the slot arrived at the same time: pass it on
	}
	return ctx.Err()
}

func (s *prioritySemaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

// releaseLocked gives a slot to the first waiter.
func (s *prioritySemaphore) releaseLocked() {
	for i := range s.waiters {
		if queue := s.waiters[i]; len(queue) > 0 {
			close(queue[0])
			s.waiters[i] = queue[1:]
			return
		}
	}
	s.free++
}
