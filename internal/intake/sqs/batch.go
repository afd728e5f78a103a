package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// What becomes of messages besides the outcomes of their notices, in metrics.
const (
	fateUnconcern  = "ofNoConcern"
	fateUnreadable = "unreadable"
	fateFailed     = "failed"
	fateProbe      = "probe"
)

const (
	// attemptTime is what one attempt to record may take, and recordPause the
	// longest pause between two.
	attemptTime = 8 * time.Second
	recordPause = 2 * time.Second
	// stopGrace is what recording may still take once Run is told to stop.
	stopGrace = 3 * time.Second

	// A notice of an instance that is not known yet comes again after a time,
	// the first time after half of it. That may be long, since the lobby hears at
	// once when the node registers: it is what is lost if this process ends, or if
	// the message names instances by a group.
	hardAgain = 30 * time.Second
	softAgain = time.Minute
	// firstAsk and longestAsk bound how long a message rests whose instances EC2 could
	// not be asked for: soon again at first, and later not so often that an outage of
	// half an hour uses up the thirty receives that a message has. A Capacity Block's
	// warning leaves ten minutes.
	firstAsk   = 10 * time.Second
	longestAsk = 2 * time.Minute
	// hold is how long a batch is kept in hand at the most while the API server
	// does not take its notices: messages that are handed back use up their
	// receives, and the dead-letter queue takes those that have none left.
	hold = 25 * time.Second
)

// fate is what is done with a message.
type fate struct {
	// word is what the metric calls it.
	word string
	// ack deletes the message.
	ack bool
	// again, if set, is when others may see it; else the visibility says so.
	again *time.Duration
}

// letter is a message in hand, with what it says.
type letter struct {
	*types.Message
	decoded
	err error // why it cannot be read
}

func (m *letter) handle() string { return aws.ToString(m.ReceiptHandle) }

func (m *letter) isUrgent() bool {
	return slices.ContainsFunc(m.notices, func(n notice.Notice) bool { return isUrgent(&n) })
}

// handle decides the messages of a batch side by side, so that none waits for
// another's write, and then says what is to become of them.
func (s *Source) handle(ctx context.Context, messages []types.Message) {
	if len(messages) == 0 {
		return
	}
	inHand, release := s.inHand(ctx)
	defer release()
	kept := s.keep(inHand, messages)
	letters, fates := make([]letter, len(messages)), make([]fate, len(messages))
	var group sync.WaitGroup
	for i := range messages {
		m := &letters[i]
		m.Message = &messages[i]
		m.decoded, m.err = decode(aws.ToString(m.Body))
		if m.scaling != "" && s.o.GroupNews != nil {
			s.o.GroupNews(m.scaling)
		}
		if m.err != nil || m.unconcern != "" {
			fates[i] = s.decide(inHand, m) // calls nobody
			continue
		}
		dealt := func() {}
		if m.isUrgent() {
			dealt = s.rush.comes()
		}
		group.Go(func() {
			s.ahead(inHand, m, len(messages) == batchSize)
			dealt()
			fates[i] = s.decide(inHand, m)
		})
	}
	group.Wait()
	release()
	<-kept // else it might take back what the answer says
	for i := range fates {
		if ctx.Err() != nil && fates[i].word == fateFailed {
			fates[i].again = new(time.Duration) // another replica may have it at once
		}
		s.o.Metrics.Received(Name, fates[i].word)
		s.answer(&letters[i], fates[i])
	}
}

// inHand returns the context of work on messages: it outlives ctx by what
// recording may take, and ends when they are handed back.
func (s *Source) inHand(ctx context.Context) (context.Context, func()) {
	hand, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold)
	unhook := context.AfterFunc(ctx, func() {
		sleep.For(hand, stopGrace)
		cancel()
	})
	return hand, func() { unhook(); cancel() }
}

// keep keeps messages from others, a visibility at a time, until ctx ends; the
// channel is closed when it has stopped. So the visibility can be short, and a
// receiver that dies costs a spot warning little of its two minutes.
func (s *Source) keep(ctx context.Context, messages []types.Message) <-chan struct{} {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for sleep.For(ctx, s.o.Visibility/2) {
			var all []postponement
			for _, m := range messages {
				all = append(all, postponement{handle: aws.ToString(m.ReceiptHandle), by: s.o.Visibility})
			}
			s.postpone(ctx, all)
		}
	}()
	return stopped
}

// decide does for one message all that has to be done before it may go.
func (s *Source) decide(ctx context.Context, m *letter) fate {
	d := &m.decoded
	switch {
	case m.err != nil:
		return s.leave(ctx, m.Message, m.err)
	case d.unconcern != "":
		s.passOver(ctx, d)
		return fate{word: fateUnconcern, ack: true}
	}
	notices, err := s.resolve(ctx, d)
	var fates []fate
	switch {
	case err != nil:
		s.say(ctx, "unresolved", "could not find the instances of a group yet", "error", err.Error(),
			"advice", "allow ec2:DescribeInstances")
		fates = []fate{{word: fateFailed, again: rest(m.Message, firstAsk, longestAsk)}}
	case len(notices)+len(d.reports) == 0 && d.probe == nil:
		fates = []fate{{word: fateUnconcern, ack: true}} // a group of none
	}
	for _, n := range notices {
		fates = append(fates, s.take(ctx, m.Message, n))
	}
	for _, r := range d.reports {
		fates = append(fates, s.pass(ctx, func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Report(ctx, r) }))
	}
	if d.probe != nil {
		fates = append(fates, s.pass(ctx, func(ctx context.Context) (intake.Outcome, error) {
			return fateProbe, s.recorder.Answer(ctx, *d.probe)
		}))
	}
	return worst(fates)
}

// worst is the fate of a message whose parts had these: it may go when every
// part may.
func worst(fates []fate) fate {
	for _, f := range fates {
		if !f.ack {
			return f
		}
	}
	return fates[0]
}

// resolve returns the notices of a message, those of instances that it names
// only as a group among them. Where some cannot be found it returns the others.
func (s *Source) resolve(ctx context.Context, d *decoded) ([]notice.Notice, error) {
	notices := slices.Clone(d.notices)
	var errs []error
	for _, g := range d.groups {
		if s.o.Instances == nil {
			s.say(ctx, "no resolver", "passed over notice of a group of instances", "filter", g.filter, "value", g.value,
				"advice", "switch on the ec2 source")
			continue
		}
		ids, err := s.o.Instances(ctx, g.filter, g.value)
		if err != nil {
			errs = append(errs, fmt.Errorf("instances with %s %s: %w", g.filter, g.value, err))
			continue
		}
		for _, id := range ids {
			n := g.notice
			n.InstanceID = id
			notices = append(notices, n)
		}
	}
	return notices, errors.Join(errs...)
}

// take records a notice of a message.
func (s *Source) take(ctx context.Context, m *types.Message, n notice.Notice) fate {
	outcome, err := s.insist(ctx, isUrgent(&n), func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Record(ctx, n) })
	switch {
	case errors.Is(err, intake.ErrRefused):
		return s.leave(ctx, m, unreadable("record", "%v", err))
	case err != nil:
		return fate{word: fateFailed}
	case outcome.Final():
		return fate{word: string(outcome), ack: true}
	case s.isHopeless(m, &n):
		s.say(ctx, "given up "+n.Kind, "dropped notice of an instance that is not of this cluster",
			"instance", n.InstanceID, "kind", n.Kind, "notice", n.ID, "receives", receives(m),
			"advice", "nothing, if the instance is of another cluster (give each cluster a queue of its own); else see why its Node has no spec.providerID that ends in the instance id")
		return fate{word: string(intake.Foreign), ack: true}
	}
	again := softAgain
	if isUrgent(&n) {
		again = hardAgain
	}
	if receives(m) == 1 {
		again /= 2
	}
	return fate{word: string(outcome), again: &again}
}

// isUrgent reports whether nobody can move the deadline of the notice.
func isUrgent(n *notice.Notice) bool {
	return notice.IsFirm(n.Deadline)
}

// pass makes durable what is no notice of an instance.
func (s *Source) pass(ctx context.Context, write func(context.Context) (intake.Outcome, error)) fate {
	outcome, err := s.insist(ctx, false, write)
	switch {
	case err != nil:
		return fate{word: fateFailed}
	case outcome == fateProbe:
		return fate{word: fateProbe, ack: true}
	}
	return fate{word: string(outcome), ack: outcome.Final()}
}

// insist tries until what a message says is durable or ctx is done: while the
// API server is away there is nothing better to do, and messages that are
// handed back use up their receives.
func (s *Source) insist(ctx context.Context, urgent bool, write func(context.Context) (intake.Outcome, error)) (intake.Outcome, error) {
	pause := backoff{longest: recordPause}
	for {
		if err := s.turnstile.enter(ctx, urgent); err != nil {
			return "", err
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		outcome, err := write(attempt)
		cancel()
		s.turnstile.leave()
		if err == nil || errors.Is(err, intake.ErrRefused) {
			return outcome, err
		}
		s.say(ctx, "failed", "could not record notice yet, goes on trying", "error", err.Error())
		if !sleep.For(ctx, pause.next()) {
			return "", err
		}
	}
}

// isHopeless reports whether an instance that is not known will not become so:
// it was asked for often enough, or, asked for twice, is gone by now.
func (s *Source) isHopeless(m *types.Message, n *notice.Notice) bool {
	limit := s.o.Receives
	if policy := s.redrive.Load(); policy != nil && policy.Target != "" {
		limit = min(limit, policy.Receives)
	}
	over := n.Deadline != nil && s.o.Clock().After(n.Deadline.Time.Time)
	return receives(m) >= limit || (over && receives(m) >= 2)
}
