package sqs

import (
	"math/rand/v2"
	"time"
)

// Delivery is how standard queues hand out messages beyond the usual case. A batch has any number
// of messages in any order, and a deleted message can come once more. The source is the Amazon SQS
// Developer Guide, "Amazon SQS standard queues".
type Delivery struct {
	// Random draws sizes of batches, their order, and duplicates. The state uses it under its
	// lock.
	Random *rand.Rand
	// Duplicates is the share of deleted messages that can be received once more.
	Duplicates float64
}

// longestReturn is how late a deleted message comes back at most.
const longestReturn = 2 * time.Second

// SetDelivery changes how all queues hand out messages. The zero value, which is the default,
// returns full batches in the order of arrival, and each message once.
func (s *State) SetDelivery(d Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivery = d
}

// batch is how many of n possible messages a receive returns. A long poll asks all servers, so it returns
// at least one. A short poll asks some of them, and may find none (Amazon SQS Developer Guide, "Amazon SQS
// short and long polling").
func (d Delivery) batch(n int, isLong bool) int {
	switch {
	case d.Random == nil || n <= 0:
		return n
	case isLong:
		return 1 + d.Random.IntN(n)
	}
	return d.Random.IntN(n + 1)
}

// pick is the index of the next message of n that can be received.
func (d Delivery) pick(n int) int {
	if d.Random == nil {
		return 0
	}
	return d.Random.IntN(n)
}

// returns says whether, and after how long, a deleted message comes back.
func (d Delivery) returns() (after time.Duration, ok bool) {
	if d.Random == nil || d.Random.Float64() >= d.Duplicates {
		return 0, false
	}
	return time.Duration(d.Random.Int64N(int64(longestReturn))), true
}

// delete removes a message, or hides it until its copy is received.
func (s *State) delete(q *queue, m *message, now time.Time) {
	after, again := s.delivery.returns()
	if m.returned || !again {
		q.remove(m)
		return
	}
	q.take(m)
	m.returned, m.inFlight, m.receipt, m.visibleAt = true, false, "", now.Add(after)
	q.hide(m)
	q.wake() // it may return sooner than polls expect
}
