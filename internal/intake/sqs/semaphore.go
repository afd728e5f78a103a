package sqs

import (
	"context"
	"slices"
	"sync"
)

// prioritySemaphore bounds how many writes are in flight. While it is exhausted, urgent
// callers acquire it before all others, whatever batch they came in: a spot warning must
// not wait behind scheduled changes that are two weeks away.
type prioritySemaphore struct {
	mu   sync.Mutex
	free int
	// waiters are the blocked callers in order of arrival: urgent ones, then the others.
	waiters [2][]chan struct{}
}

func newPrioritySemaphore(size int) *prioritySemaphore { return &prioritySemaphore{free: size} }

// acquire blocks until a slot is free or ctx is done. After a nil error the caller must
// call release.
func (s *prioritySemaphore) acquire(ctx context.Context, urgent bool) error {
	queue := &s.waiters[1]
	if urgent {
		queue = &s.waiters[0]
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	*queue = append(*queue, ready)
	s.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(*queue, ready); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
	} else {
		s.releaseLocked() // the slot arrived at the same time: pass it on
	}
	return ctx.Err()
}

func (s *prioritySemaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

// releaseLocked gives a slot to the first waiter.
func (s *prioritySemaphore) releaseLocked() {
	for i := range s.waiters {
		if queue := s.waiters[i]; len(queue) > 0 {
			close(queue[0])
			s.waiters[i] = queue[1:]
			return
		}
	}
	s.free++
}
