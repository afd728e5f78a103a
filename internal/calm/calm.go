// Package calm tells whether something urgent is being done, so that what can wait
// gives way to it: where a thousand nodes are drained at once, each request and each
// millisecond that is spent on other things is one that pods wait for.
package calm

import (
	"cmp"
	"sync"
	"time"
)

// after is how long nothing urgent has to have been done, where nothing else is said.
const after = 150 * time.Millisecond

// Calm knows what urgent things are being done, and when the last was. The zero value is
// calm.
type Calm struct {
	// After is how long nothing urgent has to have been done for it to be calm; 150 ms. It
	// is set before anything else is done with a Calm.
	After time.Duration

	mu      sync.Mutex
	ongoing int           // urgent things that are being done
	last    time.Time     // when one was last
	here    chan struct{} // closed once it is calm; nil while it is
	begun   chan struct{} // has room for one
}

// Busy says that something urgent is being done, until the function that it returns
// is called.
func (c *Calm) Busy() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ongoing++
	if c.here == nil {
		c.here = make(chan struct{})
		time.AfterFunc(c.after(), c.look)
		select {
		case c.begins() <- struct{}{}:
		default:
		}
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ongoing, c.last = c.ongoing-1, time.Now()
	})
}

func (c *Calm) after() time.Duration { return cmp.Or(c.After, after) }

// look ends what Busy has begun, if nothing urgent is being done, or was since.
func (c *Calm) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.last.Add(c.after()))
	if c.ongoing > 0 {
		left = c.after()
	}
	if left > 0 {
		time.AfterFunc(left, c.look)
		return
	}
	close(c.here)
	c.here = nil
}

// Here returns a channel that is closed once nothing urgent is being done.
func (c *Calm) Here() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.here != nil {
		return c.here
	}
	now := make(chan struct{})
	close(now)
	return now
}

// Begun returns a channel, for one to receive from, that has a value once it has
// ceased to be calm.
func (c *Calm) Begun() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begins()
}

func (c *Calm) begins() chan struct{} {
	if c.begun == nil {
		c.begun = make(chan struct{}, 1)
	}
	return c.begun
}
