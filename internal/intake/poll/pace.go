package poll

import (
	"math/rand/v2"
	"time"
)

const (
	// firstPause is how soon a call that failed is tried again.
	firstPause = time.Second
	// slowest is how many times an interval may double: four times is sixteen
	// times as long.
	slowest = 4
)

// Pace spaces the rounds of one question. Its zero value is fresh.
type Pace struct {
	failures int // in a row
	slow     int // how often the interval was doubled
}

// Next returns how long to wait after a round with this result; an empty reason
// is success. What is throttled is asked half as often each time, and finds
// back as slowly. What fails otherwise is tried again soon, and then ever less
// often, but not less than it would be asked anyway.
func (p *Pace) Next(interval time.Duration, reason Reason) time.Duration {
	switch reason {
	case "":
		p.failures, p.slow = 0, max(0, p.slow-1)
	case Throttled:
		p.failures, p.slow = 0, min(slowest, p.slow+1)
	case Denied, Refused: // trying at once changes nothing
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

// vary changes a pause by up to a tenth, so that many do not come at once.
func vary(d time.Duration) time.Duration {
	tenth := int64(d / 10)
	if tenth <= 0 {
		return d
	}
	return d + time.Duration(rand.Int64N(2*tenth)-tenth)
}
