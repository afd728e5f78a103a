package sqs

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// lull is how long nothing has to have been done ahead before what was is recorded,
	// while batches come back full: within it comes the next.
	lull = 30 * time.Millisecond
	// mostAhead is how long a message waits for others at the most.
	mostAhead = 5 * time.Second
	// aheadTime is what doing something ahead may take.
	aheadTime = 2 * time.Second
)

// ahead has done at once what can be about the urgent notices of a message, and where
// something was, returns once that is so of the other messages in hand too: of many nodes
// that go at once, none is recorded while another can still be given pods. more says that
// there are likely to be others on the queue.
func (s *Source) ahead(ctx context.Context, m *letter, more bool) {
	if s.o.Ahead == nil {
		return
	}
	done, acted := func() {}, false
	if more {
		done = s.van.Busy()
	}
	for i := range m.notices {
		if n := &m.notices[i]; isUrgent(n) {
			n.ReceivedTime = metav1.NewMicroTime(s.o.Clock())
			acted = s.doAhead(ctx, *n) || acted
		}
	}
	done()
	if !acted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mostAhead)
	defer cancel()
	select {
	case <-s.van.Here():
	case <-ctx.Done():
	}
}

func (s *Source) doAhead(ctx context.Context, n notice.Notice) bool {
	if s.turnstile.enter(ctx, true) != nil {
		return false
	}
	defer s.turnstile.leave()
	ctx, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	return s.o.Ahead(ctx, n)
}
