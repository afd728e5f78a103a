package sqs

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
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

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// Receivers is how many long polls are open while the queue is quiet; 4. MaxReceivers
	// is how many while batches are busy; 16, or Receivers if that is more.
	Receivers, MaxReceivers int
	// ConcurrentWrites bounds the writes to the API server in flight; 64. Urgent notices
	// go first.
	ConcurrentWrites int
	// Wait is how long SQS keeps a long poll open, in whole seconds; 20 s, which is also
	// the maximum.
	Wait time.Duration
	// Visibility is the visibility timeout of received messages, in whole seconds; 10 s.
	// It is renewed while a message is being processed, so it is what a crash costs.
	Visibility time.Duration
	// MaxReceives is after how many receives the notice of an instance without a Node is
	// dropped; 5, which takes about two minutes, or three and a half with a soft deadline.
	// A redrive policy with a lower maxReceiveCount lowers it.
	MaxReceives int
	// Instances returns the ids of the instances that match a filter of EC2's
	// DescribeInstances, for notices that name only a Capacity Block or a host. Nil: such
	// notices are ignored.
	Instances func(ctx context.Context, filter, value string) ([]string, error)
	// GroupNews is called with each Auto Scaling group that a message is about, so that
	// the group is polled sooner. It must not block. Nil: not called.
	GroupNews func(group string)
	// Metrics count what is received; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
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
	background chan struct{} // one slot for each batch handled in the background
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
		writes:    newPrioritySemaphore(o.ConcurrentWrites), background: make(chan struct{}, maxBackgroundBatches),
	}, nil
}

func (o Options) complete() Options {
	o.Receivers = cmp.Or(max(o.Receivers, 0), 4)
	o.MaxReceivers = max(cmp.Or(max(o.MaxReceivers, 0), 16), o.Receivers)
	o.ConcurrentWrites = cmp.Or(max(o.ConcurrentWrites, 0), 64)
	o.MaxReceives = cmp.Or(max(o.MaxReceives, 0), 5)
	o.Visibility = cmp.Or(max(o.Visibility, 0), 10*time.Second)
	if o.Wait <= 0 || o.Wait > longestWait {
		o.Wait = longestWait
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	return o
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
		MaxNumberOfMessages:         batchSize,
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

// logThrottled logs at most one line a minute for each key.
func (s *Source) logThrottled(ctx context.Context, key, message string, names ...any) {
	if held, ok := s.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

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
