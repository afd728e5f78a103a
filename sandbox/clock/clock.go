package clock

import (
	"errors"
	"time"
)

// Error is how wrong a clock is.
type Error struct {
	// Step is added to the time.
	Step time.Duration
	// Rate is added in each second that passes; it is exact to a thousandth.
	Rate time.Duration
	// From is when the drift begins, and Until is when the clock is right again.
	From, Until time.Time
}

// ErrUnsupported says that this machine cannot change the clock of one process.
var ErrUnsupported = errors.New("changing the clock of one process needs Linux on x86-64")

// ErrEnded says that the process has ended.
var ErrEnded = errors.New("the process has ended")
