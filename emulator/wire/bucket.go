package wire

import "time"

// bucket is a token bucket with one token per call: a burst, and a refill rate per second.
type bucket struct {
	perSecond, burst float64
	tokens           float64
	filled           time.Time
}

func newBucket(perSecond float64, burst int, now time.Time) *bucket {
	return &bucket{perSecond: perSecond, burst: float64(burst), tokens: float64(burst), filled: now}
}

// take takes one token, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.burst, b.tokens+b.perSecond*now.Sub(b.filled).Seconds())
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
