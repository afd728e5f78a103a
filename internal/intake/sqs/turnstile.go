package sqs

import (
	"context"
	"slices"
	"sync"
)

// turnstile lets so many writes through at a time. Where there are more, those
// that are urgent go first, whatever batch they came in: a spot warning does not
// wait for the scheduled changes of two weeks hence that came before it.
type turnstile struct {
	mu   sync.Mutex
	free int
	// queues hold who waits: the urgent, and the others.
	queues [2][]chan struct{}
}

func newTurnstile(abreast int) *turnstile { return &turnstile{free: abreast} }

// enter waits for its turn. Who has entered has to leave.
func (t *turnstile) enter(ctx context.Context, urgent bool) error {
	queue := &t.queues[1]
	if urgent {
		queue = &t.queues[0]
	}
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	*queue = append(*queue, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(*queue, turn); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
	} else {
		t.next() // its turn came meanwhile; another has it
	}
	return ctx.Err()
}

func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives a free place to who is first.
func (t *turnstile) next() {
	for i := range t.queues {
		if queue := t.queues[i]; len(queue) > 0 {
			close(queue[0])
			t.queues[i] = queue[1:]
			return
		}
	}
	t.free++
}
