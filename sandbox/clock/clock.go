package clock

import "time"

// Error is how wrong a clock is.
type Error struct {
	// Step is added to the time.
	Step time.Duration
	// Rate is added in each second that passes; it is exact to a thousandth.
	Rate time.Duration
	// From is when the drift begins, and Until is when the clock is right again.
	From, Until time.Time
}
