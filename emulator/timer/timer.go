// Package timer delays the background work of emulated services.
package timer

import (
	"sync"
	"time"
)

// Clock runs functions later, under the lock of the state that they change, until it is stopped.
type Clock struct {
	mu      sync.Locker
	stopped bool
	timers  map[*time.Timer]struct{}
}

// NewClock returns a clock whose functions run under mu.
func NewClock(mu sync.Locker) *Clock {
	return &Clock{mu: mu, timers: map[*time.Timer]struct{}{}}
}

// After runs f with the lock held after d. It needs the lock.
func (c *Clock) After(d time.Duration, f func()) {
	if c.stopped {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
		if !c.stopped {
			f()
		}
	})
	c.timers[t] = struct{}{}
}

// Stop cancels all functions, pending and future. It takes the lock.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for t := range c.timers {
		t.Stop()
	}
	clear(c.timers)
}
