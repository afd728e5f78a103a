package sqs

import (
	"context"
	"strconv"
	"time"
)

const (
	// maxVisibility is the longest that a message stays hidden after a receive,
	// in seconds: 12 hours.
	maxVisibility = 43200
	// maxInFlight is a standard queue's quota of messages in flight.
	maxInFlight = 120000
)

// ReceiveOptions says how to receive. Nil pointers mean the queue's settings.
type ReceiveOptions struct {
	// Max is how many messages to return at most, 1 to 10.
	Max int
	// Visibility is how long they are hidden then, in seconds.
	Visibility *int
	// Wait is how long to wait for the first message, in seconds.
	Wait *int
}

// Received is a message on its way to a consumer.
type Received struct {
	ID         string
	Handle     string
	Body       string
	Attributes map[string]MessageAttribute
	// System are the system attributes, all of them.
	System map[string]string
}

// Receive returns messages, and can wait for the first. It returns as soon as there is one, and
// without any after the wait time or when ctx is done.
func (s *State) Receive(ctx context.Context, name string, o ReceiveOptions) ([]Received, error) {
	began := time.Now()
	for {
		got, next, err := s.receiveNow(ctx, name, o, began)
		if err != nil || len(got) > 0 || next.changed == nil {
			return got, err
		}
		timer := time.NewTimer(time.Until(next.at))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil
		case <-next.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// another says when to check again: at a time, or on a change. No channel means never.
type another struct {
	at      time.Time
	changed <-chan struct{}
}

func (s *State) receiveNow(ctx context.Context, name string, o ReceiveOptions, began time.Time) ([]Received, another, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return nil, another{}, err
	}
	if ctx.Err() != nil {
		return nil, another{}, nil // the caller is disconnected
	}
	wait, visibility := orDefault(o.Wait, q.settings.wait), orDefault(o.Visibility, q.settings.visibility)
	now := time.Now()
	q.advance(now)
	room := s.maxInFlight - q.inFlight
	if room <= 0 && wait == 0 {
		return nil, another{}, overLimit()
	}
	got := s.takeOut(q, s.delivery.batch(min(o.Max, room, len(q.ready.items)), wait > 0), visibility, now)
	end := began.Add(time.Duration(wait) * time.Second)
	if len(got) > 0 || !now.Before(end) {
		return got, another{}, nil
	}
	if back := q.nextBack(); !back.IsZero() && back.Before(end) {
		end = back
	}
	return nil, another{at: end, changed: q.changed}, nil
}

// takeOut hides and returns up to n messages; those received too often move to the dead-letter
// queue instead.
func (s *State) takeOut(q *queue, n, visibility int, now time.Time) []Received {
	var got []Received
	for len(got) < n && len(q.ready.items) > 0 {
		m := q.ready.items[s.delivery.pick(len(q.ready.items))]
		if s.giveUp(q, m, now) {
			continue
		}
		q.take(m)
		m.receives++
		m.receivesHere++
		m.received = now
		if m.firstReceived.IsZero() {
			m.firstReceived = now
		}
		m.visibleAt = now.Add(time.Duration(visibility) * time.Second)
		m.inFlight = true
		handle := q.newHandle(m)
		q.hide(m)
		got = append(got, Received{
			ID: m.id, Handle: handle, Body: m.body, Attributes: m.attributes, System: m.systemAttributes(),
		})
	}
	return got
}

// systemAttributes are what ReceiveMessage can tell about a message. Times are
// milliseconds since 1970.
func (m *message) systemAttributes() map[string]string {
	all := map[string]string{
		"SenderId":                         m.sender,
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.firstReceived.UnixMilli(), 10),
	}
	for name, value := range map[string]string{
		"AWSTraceHeader":           m.trace,
		"MessageGroupId":           m.group,
		"DeadLetterQueueSourceArn": m.source,
	} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}

func orDefault(given *int, otherwise int) int {
	if given != nil {
		return *given
	}
	return otherwise
}
