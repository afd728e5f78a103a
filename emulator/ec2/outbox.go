package ec2

import (
	"context"
	"sync"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
)

// effect is an event or a change to deliver.
type effect struct {
	event  *events.Event
	change *Change
}

// outbox delivers effects in order, from one goroutine and without any lock, so that a receiver may
// call the state.
type outbox struct {
	emit   func(events.Event)
	filled chan struct{} // holds one token while effects may wait

	mu          sync.Mutex
	waiting     []effect
	subscribers []*subscriber
}

type subscriber struct{ f func(Change) }

func newOutbox(emit func(events.Event)) *outbox {
	return &outbox{emit: emit, filled: make(chan struct{}, 1)}
}

func (o *outbox) put(e effect) {
	o.mu.Lock()
	o.waiting = append(o.waiting, e)
	o.mu.Unlock()
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

func (o *outbox) subscribe(f func(Change)) (cancel func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := &subscriber{f}
	o.subscribers = append(o.subscribers, sub)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		var rest []*subscriber // a new slice: run may be iterating over the old one
		for _, other := range o.subscribers {
			if other != sub {
				rest = append(rest, other)
			}
		}
		o.subscribers = rest
	}
}

// run delivers effects until ctx is done.
func (o *outbox) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.filled:
		}
		for {
			e, subscribers, ok := o.next()
			if !ok || ctx.Err() != nil {
				break
			}
			if e.event != nil {
				o.emit(*e.event)
			}
			if e.change != nil {
				for _, sub := range subscribers {
					sub.f(*e.change)
				}
			}
		}
	}
}

func (o *outbox) next() (effect, []*subscriber, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return effect{}, nil, false
	}
	e := o.waiting[0]
	o.waiting = o.waiting[1:]
	return e, o.subscribers, true
}
