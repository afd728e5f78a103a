package sqs

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// pendingInterval is how often pending messages are retried. A retry costs some
	// microseconds a message and no API request.
	pendingInterval = time.Second
	// urgentRetry and softRetry hide a message whose instance has no Node yet; half of it
	// after the first receive. They can be long because retryPending notices the Node
	// within a second. The whole time is lost only if this process ends meanwhile, or if
	// the message names its instances by a group.
	urgentRetry = 30 * time.Second
	softRetry   = time.Minute
	// maxPending bounds the pending messages.
	maxPending = 2000
)

// pendingMessages remembers hidden messages whose instance has no Node yet, until their
// visibility timeout ends. It lets the timeout be long, which saves receives, and still
// records the notice within a second after the Node registers. Best effort: messages that
// do not fit, or that a restart forgets, become visible again in the queue.
type pendingMessages struct {
	mu       sync.Mutex
	byHandle map[string]*pendingMessage // by receipt handle
}

type pendingMessage struct {
	message *message
	until   time.Time
}

func (p *pendingMessages) add(m *message, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byHandle) >= maxPending {
		return
	}
	if p.byHandle == nil {
		p.byHandle = map[string]*pendingMessage{}
	}
	// A copy without the body: it would keep the memory of the whole batch.
	small := &message{Message: &types.Message{ReceiptHandle: m.ReceiptHandle}, decoded: m.decoded}
	p.byHandle[m.handle()] = &pendingMessage{message: small, until: until}
}

// hidden drops the messages whose visibility timeout has ended and returns the others.
func (p *pendingMessages) hidden(now time.Time) []*message {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hidden []*message
	for handle, entry := range p.byHandle {
		if !now.Before(entry.until) {
			delete(p.byHandle, handle)
			continue
		}
		hidden = append(hidden, entry.message)
	}
	return hidden
}

func (p *pendingMessages) remove(m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byHandle, m.handle())
}

// retryPending records the pending messages whose Node has registered, until ctx is done.
func (s *Source) retryPending(ctx context.Context) {
	for sleep.For(ctx, pendingInterval) {
		for _, m := range s.pending.hidden(s.o.Clock()) {
			if ctx.Err() != nil {
				return
			}
			if d, done := s.retryOnce(ctx, m); done {
				s.pending.remove(m)
				s.o.Metrics.Received(Name, d.outcome)
				s.deletes.in <- m.handle()
			}
		}
	}
}

// isRetriable reports whether a message consists of notices about named instances only.
// Everything else needs a request to EC2 or the API server and waits for the next receive.
func (d *decoded) isRetriable() bool {
	return len(d.notices) > 0 && len(d.groups)+len(d.reports) == 0 && d.probe == nil
}

// retryOnce tries once to record a pending message. It reports false unless all of the
// message is durable.
func (s *Source) retryOnce(ctx context.Context, m *message) (disposition, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()
	if !m.isRetriable() {
		return disposition{}, false
	}
	var last intake.Outcome
	for _, n := range m.notices {
		outcome, err := s.recorder.Record(ctx, n)
		if err != nil || !outcome.Final() {
			return disposition{}, false
		}
		last = outcome
	}
	return disposition{outcome: string(last), ack: true}, true
}

// awaitNode hides the message of an instance that has no Node yet, or gives it up.
func (s *Source) awaitNode(ctx context.Context, m *types.Message, n *notice.Notice) disposition {
	if s.isGivenUp(m, n) {
		s.logThrottled(ctx, "given up "+n.Kind, "dropped notice of an instance that is not of this cluster",
			"instance", n.InstanceID, "kind", n.Kind, "notice", n.ID, "receives", receives(m),
			"advice", "nothing, if the instance is of another cluster (give each cluster a queue of its own); else see why its Node has no spec.providerID that ends in the instance id")
		return disposition{outcome: string(intake.Foreign), ack: true}
	}
	return hideUnknown(m, n)
}

// hideUnknown hides the message of an instance that is not known yet.
func hideUnknown(m *types.Message, n *notice.Notice) disposition {
	retry := softRetry
	if notice.IsFirm(n.Deadline) {
		retry = urgentRetry
	}
	if receives(m) == 1 {
		retry /= 2
	}
	return disposition{outcome: string(intake.NotYetKnown), retryIn: &retry}
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
