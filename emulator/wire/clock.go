package wire

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of the emulated AWS, which can differ from the machine's. Durations do not
// change. The zero value and a nil Clock agree with the machine's.
type Clock struct{ offset atomic.Int64 }

// SetOffset makes the clock ahead of the machine's, or behind it if negative.
func (c *Clock) SetOffset(d time.Duration) { c.offset.Store(int64(d)) }

// Now is the time on the clock.
func (c *Clock) Now() time.Time { return c.At(time.Now()) }

// At is a time of the machine as the clock shows it. The zero time stays.
func (c *Clock) At(t time.Time) time.Time {
	if c == nil || t.IsZero() {
		return t
	}
	return t.Add(time.Duration(c.offset.Load()))
}
