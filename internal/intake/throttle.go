package intake

import (
	"sync"
	"time"
)

const (
	throttlePeriod = time.Minute
	throttleKeys   = 256
	otherKeys      = "(other)"
)

// Throttle limits repeated log lines: each key passes once a minute.
type Throttle struct {
	clock func() time.Time

	mu   sync.Mutex
	seen map[string]*passage
}

// passage is when a key last passed, and how often it was suppressed since.
type passage struct {
	at   time.Time
	held int
}

// NewThrottle returns a Throttle that reads the time from clock.
func NewThrottle(clock func() time.Time) *Throttle {
	return &Throttle{clock: clock, seen: map[string]*passage{}}
}

// Allow reports whether the key may pass now, and how many were suppressed since it last passed.
// Keys may come from message content: Allow remembers a bounded number, and all others share
// one.
func (t *Throttle) Allow(key string) (held int, ok bool) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.seen[key]
	if p == nil && len(t.seen) >= throttleKeys {
		t.forget(now)
		if len(t.seen) >= throttleKeys {
			key = otherKeys
			p = t.seen[key]
		}
	}
	if p == nil {
		t.seen[key] = &passage{at: now}
		return 0, true
	}
	if now.Sub(p.at) < throttlePeriod {
		p.held++
		return 0, false
	}
	held = p.held
	*p = passage{at: now}
	return held, true
}

func (t *Throttle) forget(now time.Time) {
	for key, p := range t.seen {
		if now.Sub(p.at) >= throttlePeriod {
			delete(t.seen, key)
		}
	}
}
