package sqs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// Recorder makes the content of messages durable; intake.Recorder implements it.
type Recorder interface {
	Record(ctx context.Context, n notice.Notice) (intake.Outcome, error)
	Report(ctx context.Context, r intake.Report) (intake.Outcome, error)
	Answer(ctx context.Context, p intake.Probe) error
}

// Source receives notices from one queue.
type Source struct {
	queue    string
	api      API
	recorder Recorder
	o        Options
	throttle *intake.Throttle

	redrive atomic.Pointer[redrive] // nil: not read yet
	reach   reach

	receivers  receiverPool
	writes     *prioritySemaphore
	background *semaphore.Weighted // messages handled in the background
	pending    pendingMessages
	deletes    *batcher[string] // receipt handles
	visibility *batcher[visibilityChange]
}

// New returns the source of the queue with this URL, or an error that shows a valid URL.
func New(queueURL string, api API, recorder Recorder, o Options) (*Source, error) {
	if err := checkURL(queueURL); err != nil {
		return nil, err
	}
	o = o.complete()
	return &Source{
		queue: queueURL, api: api, recorder: recorder, o: o, throttle: intake.NewThrottle(o.Clock),
		receivers: receiverPool{least: o.Receivers, most: o.MaxReceivers},
		writes:    newPrioritySemaphore(o.ConcurrentWrites), background: semaphore.NewWeighted(maxBackground),
	}, nil
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run receives until ctx is done, then finishes the messages in flight, which takes at
// most seconds. It retries every failure of SQS and the API server, and returns nil.
func (s *Source) Run(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("queue", s.queue))
	s.o.Metrics.Up(Name, false)
	s.deletes, s.visibility = newBatcher(s.acknowledge), newBatcher(s.changeVisibility)
	var batchers, helpers sync.WaitGroup
	batchers.Go(func() { s.deletes.run(context.WithoutCancel(ctx)) })
	batchers.Go(func() { s.visibility.run(context.WithoutCancel(ctx)) })
	helpers.Go(func() { s.inspect(ctx) })
	helpers.Go(func() { s.retryPending(ctx) })
	for range s.o.Receivers {
		s.receivers.grow(func() { s.receive(ctx) })
	}
	s.receivers.group.Wait()
	helpers.Wait()
	close(s.deletes.in)
	close(s.visibility.in)
	batchers.Wait()
	return nil
}

func (s *Source) request() *awssqs.ReceiveMessageInput {
	in := &awssqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(s.queue),
		MaxNumberOfMessages:         s.receivers.batchSize(),
		WaitTimeSeconds:             seconds(s.o.Wait),
		VisibilityTimeout:           seconds(s.o.Visibility),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	}
	switch {
	case !s.reach.isUp():
		in.WaitTimeSeconds = 0 // learn at once whether the queue is reachable
	case s.receivers.hasExtra():
		in.WaitTimeSeconds = 1 // shrink soon once the queue is empty
	}
	return in
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) } //nolint:gosec // G115: waits and timeouts of SQS, below 12 hours

// maxBackground bounds the messages that are handled, without their bodies, while their receiver
// receives again.
const maxBackground = 1000

// isBusy reports whether the queue probably holds more. A full batch is no precondition: SQS may
// return fewer messages than it has (SQS API Reference, ReceiveMessage, MaxNumberOfMessages).
func isBusy(messages []types.Message, requested int32) bool { return 2*len(messages) >= int(requested) }

// receive receives one batch after the other until ctx is done or the pool shrinks.
func (s *Source) receive(ctx context.Context) {
	pause := backoff{longest: longestPause}
	for ctx.Err() == nil {
		in := s.request()
		out, err := s.api.ReceiveMessage(ctx, in, once)
		switch {
		case err == nil:
			pause.reset()
			s.reached(ctx)
			s.receivers.observeSize(out.Messages)
			s.dispatch(ctx, out.Messages, isBusy(out.Messages, in.MaxNumberOfMessages))
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
// background, so that receiving goes on while its notices are recorded. If too many are
// handled already, the receiver waits for its batch.
func (s *Source) dispatch(ctx context.Context, messages []types.Message, busy bool) {
	if busy {
		s.receivers.grow(func() { s.receive(ctx) })
		if n := int64(len(messages)); s.background.TryAcquire(n) {
			s.receivers.group.Go(func() {
				defer s.background.Release(n)
				s.handle(ctx, messages)
			})
			return
		}
	}
	s.handle(ctx, messages)
}
