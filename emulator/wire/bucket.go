package wire

import "time"

// Bucket is a token bucket: a burst, and a refill rate per second. It is not safe for concurrent use.
type Bucket struct {
	perSecond, burst float64
	tokens           float64
	filled           time.Time
}

// NewBucket returns a full bucket.
func NewBucket(perSecond float64, burst int, now time.Time) *Bucket {
	return &Bucket{perSecond: perSecond, burst: float64(burst), tokens: float64(burst), filled: now}
}

// Take takes one token, if there is one.
func (b *Bucket) Take(now time.Time) bool { return b.TakeN(1, now) }

// TakeN takes n tokens, if there are so many.
func (b *Bucket) TakeN(n int, now time.Time) bool {
	b.tokens = min(b.burst, b.tokens+b.perSecond*now.Sub(b.filled).Seconds())
	b.filled = now
	if b.tokens < float64(n) {
		return false
	}
	b.tokens -= float64(n)
	return true
}

// giveBack returns tokens that were taken just now.
func (b *Bucket) giveBack(n int) { b.tokens += float64(n) }
