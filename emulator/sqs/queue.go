package sqs

import (
	"cmp"
	"container/heap"
	"crypto/rand"
	"maps"
	"strconv"
	"time"
)

// queue is one queue: pure data, under the lock of its State. Every message is in exactly one of
// ready and hidden.
type queue struct {
	id       string // distinguishes its receipt handles from those of another queue with its name
	name     string
	arn      string
	created  time.Time
	modified time.Time
	purged   time.Time
	settings settings
	tags     map[string]string

	sequence int64
	messages map[string]*message // by id
	ready    messageHeap         // can be received, oldest first
	hidden   messageHeap         // delayed or in flight, soonest back first
	inFlight int
	expiry   time.Time // no message expires before; zero: not known

	// changed is closed, and replaced, when a message may have become available or the queue is
	// deleted.
	changed chan struct{}
}

func newQueue(name, arn string, s settings, tags map[string]string, now time.Time) *queue {
	q := &queue{
		id:       rand.Text()[:8],
		name:     name,
		arn:      arn,
		created:  now,
		modified: now,
		settings: s,
		tags:     map[string]string{},
		changed:  make(chan struct{}),
	}
	maps.Copy(q.tags, tags)
	q.ready.before = func(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) }
	q.hidden.before = func(a, b *message) int { return a.visibleAt.Compare(b.visibleAt) }
	q.clear()
	return q
}

// wake makes waiting polls check again.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// clear removes all messages.
func (q *queue) clear() {
	q.messages = map[string]*message{}
	q.ready.items, q.hidden.items = nil, nil
	q.inFlight = 0
}

// configure changes settings.
func (q *queue) configure(s settings, now time.Time) {
	q.settings, q.modified = s, now
	q.expiry = time.Time{}
	q.wake()
}

// advance removes expired messages, and returns hidden messages whose time is over.
func (q *queue) advance(now time.Time) {
	for len(q.hidden.items) > 0 && !q.hidden.items[0].visibleAt.After(now) {
		m := q.hidden.items[0]
		q.take(m)
		q.show(m)
	}
	if now.Before(q.expiry) {
		return
	}
	q.expiry = now.Add(q.settings.retentionTime())
	for _, m := range q.messages {
		end := m.sent.Add(q.settings.retentionTime())
		if !end.After(now) {
			q.remove(m)
		} else if end.Before(q.expiry) {
			q.expiry = end
		}
	}
}

// insert adds a message that is not in the queue, hidden until visibleAt if
// that lies ahead.
func (q *queue) insert(m *message, now time.Time) {
	q.sequence++
	m.sequence = q.sequence
	q.messages[m.id] = m
	if end := m.sent.Add(q.settings.retentionTime()); end.Before(q.expiry) {
		q.expiry = end
	}
	if m.visibleAt.After(now) {
		q.hide(m)
	} else {
		q.show(m)
	}
	q.wake()
}

// remove deletes a message.
func (q *queue) remove(m *message) {
	q.take(m)
	delete(q.messages, m.id)
}

func (q *queue) show(m *message) {
	m.inFlight = false
	heap.Push(&q.ready, m)
}

func (q *queue) hide(m *message) {
	if m.inFlight {
		q.inFlight++
	}
	heap.Push(&q.hidden, m)
}

// take removes a message from the heap it is in.
func (q *queue) take(m *message) {
	if m.heap == &q.hidden && m.inFlight {
		q.inFlight--
	}
	heap.Remove(m.heap, m.slot)
}

// nextBack is when the next hidden message returns; zero if none is hidden.
func (q *queue) nextBack() time.Time {
	if len(q.hidden.items) == 0 {
		return time.Time{}
	}
	return q.hidden.items[0].visibleAt
}

// attributes renders settings and counts.
func (q *queue) attributes() map[string]string {
	all := q.settings.attributes()
	all["QueueArn"] = q.arn
	all["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	all["LastModifiedTimestamp"] = strconv.FormatInt(q.modified.Unix(), 10)
	all["ApproximateNumberOfMessages"] = strconv.Itoa(len(q.ready.items))
	all["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(q.inFlight)
	all["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(len(q.hidden.items) - q.inFlight)
	return all
}

// messageHeap is a heap of messages that store their index in it.
type messageHeap struct {
	items  []*message
	before func(a, b *message) int
}

// Len implements heap.Interface.
func (h *messageHeap) Len() int { return len(h.items) }

// Less implements heap.Interface.
func (h *messageHeap) Less(i, j int) bool { return h.before(h.items[i], h.items[j]) < 0 }

// Swap implements heap.Interface.
func (h *messageHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].slot, h.items[j].slot = i, j
}

// Push implements heap.Interface.
func (h *messageHeap) Push(x any) {
	m := x.(*message)
	m.heap, m.slot = h, len(h.items)
	h.items = append(h.items, m)
}

// Pop implements heap.Interface.
func (h *messageHeap) Pop() any {
	last := len(h.items) - 1
	m := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	m.heap = nil
	return m
}
