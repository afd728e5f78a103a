package sqs

import (
	"cmp"
	"context"
	"fmt"
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

// Recorder makes durable what a message says: intake.Recorder does.
type Recorder interface {
	Record(ctx context.Context, n notice.Notice) (intake.Outcome, error)
	Report(ctx context.Context, r intake.Report) (intake.Outcome, error)
	Answer(ctx context.Context, p intake.Probe) error
}

// Options are what a Source can be told. Zero values are the defaults.
type Options struct {
	// Receivers is how many long polls are open at once while there is little to
	// do; 4. Most is how many there are while batches come back full; 16, or
	// Receivers if that is more.
	Receivers, Most int
	// Abreast is how many writes to the API server are under way at the same
	// time, the urgent ones first; 64.
	Abreast int
	// Wait is how long SQS keeps a long poll open, in whole seconds; 20 s,
	// which is also the most.
	Wait time.Duration
	// Visibility is how long a message that was received is kept from others,
	// in whole seconds; 10 s. It is renewed while the message is in hand, so
	// it is what a receiver that dies costs.
	Visibility time.Duration
	// Receives is after how many receives the notice of an instance that is
	// not known is given up; 5, which is after about two minutes, or three and a
	// half where the deadline is soft. A queue that moves messages to its
	// dead-letter queue earlier lowers it.
	Receives int
	// Instances finds the ids of the instances that a filter of EC2's
	// DescribeInstances selects, for notices that name only a Capacity Block or a
	// host; nil: those are passed over.
	Instances func(ctx context.Context, filter, value string) ([]string, error)
	// GroupNews is called with each Auto Scaling group of which a message says that
	// it does something, so that it is looked at sooner; it must not block. Nil:
	// nobody looks.
	GroupNews func(group string)
	// Metrics are counted in; nil: nobody reads them.
	Metrics *intake.Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Source takes notices from one queue.
type Source struct {
	queue    string
	api      API
	recorder Recorder
	o        Options
	throttle *intake.Throttle

	redrive atomic.Pointer[redrive] // nil: not read yet
	reach   reach

	crew      crew
	turnstile *turnstile
	beside    chan struct{} // a place for each batch that no receiver waits for
	lobby     lobby
	deletes   *outbox[string] // receipt handles
	returns   *outbox[postponement]
}

// New returns the source of the queue with this URL, or an error that says
// what a URL looks like.
func New(queueURL string, api API, recorder Recorder, o Options) (*Source, error) {
	if err := checkURL(queueURL); err != nil {
		return nil, err
	}
	o = o.complete()
	s := &Source{queue: queueURL, api: api, recorder: recorder, o: o, throttle: intake.NewThrottle(o.Clock),
		turnstile: newTurnstile(o.Abreast),
		beside:    make(chan struct{}, mostBeside)}
	s.crew.least, s.crew.most = o.Receivers, o.Most
	return s, nil
}

func (o Options) complete() Options {
	o.Receivers = cmp.Or(max(o.Receivers, 0), 4)
	o.Most = max(cmp.Or(max(o.Most, 0), 16), o.Receivers)
	o.Abreast = cmp.Or(max(o.Abreast, 0), 64)
	o.Receives = cmp.Or(max(o.Receives, 0), 5)
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

// Run receives until ctx is done, then finishes what is in hand, for which it
// takes seconds. It survives whatever SQS and the API server do, and returns
// nil.
func (s *Source) Run(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("queue", s.queue))
	s.o.Metrics.Up(Name, false)
	s.deletes, s.returns = newOutbox(s.acknowledge), newOutbox(s.postpone)
	var desk, floor sync.WaitGroup
	desk.Go(func() { s.deletes.run(context.WithoutCancel(ctx)) })
	desk.Go(func() { s.returns.run(context.WithoutCancel(ctx)) })
	floor.Go(func() { s.inspect(ctx) })
	floor.Go(func() { s.attend(ctx) })
	for range s.o.Receivers {
		s.crew.grow(func() { s.receive(ctx) })
	}
	s.crew.group.Wait()
	floor.Wait()
	close(s.deletes.in)
	close(s.returns.in)
	desk.Wait()
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
		in.WaitTimeSeconds = 0 // an empty queue answers at once that it is there
	case s.crew.spare():
		in.WaitTimeSeconds = 1 // who is not needed leaves soon
	}
	return in
}

// inspect learns, once, what the queue does with messages that are left in it.
func (s *Source) inspect(ctx context.Context) {
	pause := backoff{longest: longestPause}
	for {
		out, err := s.api.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl:       aws.String(s.queue),
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy},
		}, once)
		if err == nil {
			s.heed(ctx, out.Attributes)
			return
		}
		if ctx.Err() != nil {
			return
		}
		reason, advice := explain("sqs:GetQueueAttributes", err)
		s.o.Metrics.Failed(Name, "inspect", reason)
		s.say(ctx, "inspect "+reason, "could not see whether the queue has a dead-letter queue", "error", err, "advice", advice)
		if reason == reasonDenied || !sleep.For(ctx, pause.next()) {
			return
		}
	}
}

// heed remembers the redrive policy, and says what is amiss with it.
func (s *Source) heed(ctx context.Context, attributes map[string]string) {
	policy, err := redriveOf(attributes)
	logger := log.FromContext(ctx)
	switch {
	case err != nil:
		logger.Error(err, "could not read the queue's redrive policy")
		return
	case policy.Target == "":
		logger.Info("queue has no dead-letter queue: messages that cannot be read come again until they expire",
			"advice", fmt.Sprintf(`make a queue for them, then: aws sqs set-queue-attributes --queue-url %s --attributes '{"RedrivePolicy":"{\"deadLetterTargetArn\":\"ARN\",\"maxReceiveCount\":\"10\"}"}'`, s.queue))
	case policy.Receives < s.o.Receives:
		logger.Info("queue gives messages up early: so does Lifeboat with notices of instances that have not registered yet",
			"maxReceiveCount", policy.Receives, "advice", fmt.Sprintf("set maxReceiveCount of the queue's redrive policy to %d or more", s.o.Receives+2))
	}
	s.redrive.Store(&policy)
}

// say logs what like messages have in common once a minute.
func (s *Source) say(ctx context.Context, key, message string, names ...any) {
	if held, ok := s.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }
