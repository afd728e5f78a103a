package sqs

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"
)

// newHandle makes a receipt handle for a message just received: opaque to
// clients, and different each time.
func (q *queue) newHandle(m *message) string {
	m.receipt = rand.Text()
	return base64.StdEncoding.EncodeToString([]byte(q.id + " " + m.id + " " + m.receipt))
}

// redeem finds a handle's message. It is nil if the message is deleted, or was received again
// since, which makes the handle outdated. Handles of other queues are rejected.
func (q *queue) redeem(handle string) (*message, error) {
	if handle == "" {
		return nil, missingParameter("ReceiptHandle")
	}
	decoded, err := base64.StdEncoding.DecodeString(handle)
	parts := strings.Split(string(decoded), " ")
	if err != nil || len(parts) != 3 || parts[0] != q.id {
		return nil, badHandle(handle)
	}
	m := q.messages[parts[1]]
	if m == nil || m.receipt != parts[2] {
		return nil, nil
	}
	return m, nil
}

// DeleteMessage removes the message of a receipt handle. An outdated handle succeeds and deletes
// nothing (API Reference, DeleteMessage).
func (s *State) DeleteMessage(name, handle string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	m, err := q.redeem(handle)
	if err != nil || m == nil {
		return err
	}
	s.delete(q, m, time.Now())
	for _, f := range s.acknowledged {
		f(name, m.body)
	}
	return nil
}

// Acknowledged calls f with each queue and body of a message that a client deletes. f must not call
// the State.
func (s *State) Acknowledged(f func(queue, body string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acknowledged = append(s.acknowledged, f)
}

// ChangeVisibility hides a message in flight for that many seconds from now; 0 returns it
// immediately.
func (s *State) ChangeVisibility(name, handle string, seconds *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	now := time.Now()
	q.advance(now)
	m, err := q.redeem(handle)
	if err != nil {
		return err
	}
	if err := checkVisibility(seconds); err != nil {
		return err
	}
	until := now.Add(time.Duration(*seconds) * time.Second)
	switch {
	case m == nil:
		return badParameter("Value %s for parameter ReceiptHandle is invalid. "+
			"Reason: Message does not exist or is not available for visibility timeout change.", handle)
	case !m.inFlight:
		return prefixed("MessageNotInflight", "The specified message isn't in flight.")
	case until.Sub(m.received) > maxVisibility*time.Second:
		return badParameter("Total VisibilityTimeout for the message is beyond the limit [%d seconds]", maxVisibility)
	}
	q.take(m)
	m.visibleAt = until
	q.hide(m)
	q.advance(now) // 0 seconds: it returns immediately
	q.wake()       // it may return sooner than polls expect
	return nil
}

func checkVisibility(seconds *int) error {
	if seconds == nil {
		return missingParameter("VisibilityTimeout")
	}
	if *seconds < 0 || *seconds > maxVisibility {
		return badParameter("Value %d for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout must be between 0 and %d.",
			*seconds, maxVisibility)
	}
	return nil
}
