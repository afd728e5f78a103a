package poll

import (
	"math/rand/v2"
	"time"
)

const (
	// firstPause is the wait before the first retry of a failed call.
	firstPause = time.Second
	// slowest is how many times an interval may double: four times is sixteen
	// times as long.
	slowest = 4
)

// Backoff paces the rounds of one query. Its zero value is ready to use.
type Backoff struct {
	failures int // consecutive
	slow     int // how often the interval was doubled
}

// Next returns the wait after a round with this result; an empty reason is
// success. Throttling doubles the interval each time, and each success halves
// it again. Other failures are retried soon and then with increasing waits, at
// most the interval.
func (p *Backoff) Next(interval time.Duration, reason Reason) time.Duration {
	switch reason {
	case "":
		p.failures, p.slow = 0, max(0, p.slow-1)
	case Throttled:
		p.failures, p.slow = 0, min(slowest, p.slow+1)
	case Denied, Refused: // an early retry would fail too
	default:
		pause := interval
		if p.failures < 10 {
			pause = min(interval, firstPause<<p.failures)
			p.failures++
		}
		return vary(pause)
	}
	return vary(interval << p.slow)
}

// vary adds jitter of up to a tenth, so that many pollers do not synchronise.
func vary(d time.Duration) time.Duration {
	tenth := int64(d / 10)
	if tenth <= 0 {
		return d
	}
	return d + time.Duration(rand.Int64N(2*tenth)-tenth)
}
