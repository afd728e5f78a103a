package wire

import (
	"sync"
	"time"
)

// Draw is what one call takes from one token bucket of an account. The bucket belongs to the service.
type Draw struct {
	// Bucket is its name within the service.
	Bucket string
	// PerSecond is its refill rate, and Burst its capacity.
	PerSecond float64
	Burst     int
	// Tokens is how many the call takes; zero: one.
	Tokens int
}

// quotas are the token buckets of an account, by service and name.
type quotas struct {
	mu      sync.Mutex
	buckets map[target]*Bucket
}

// admit takes the tokens of a call, if all its buckets have them. A refused call takes none.
func (q *quotas) admit(service string, draws []Draw, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, d := range draws {
		t := target{service, d.Bucket}
		if q.buckets[t] == nil {
			q.buckets[t] = NewBucket(d.PerSecond, d.Burst, now)
		}
		if !q.buckets[t].TakeN(max(d.Tokens, 1), now) {
			for _, given := range draws[:i] {
				q.buckets[target{service, given.Bucket}].giveBack(max(given.Tokens, 1))
			}
			return false
		}
	}
	return true
}

// LimitRates applies the quotas of the services' accounts: calls beyond them are throttled.
func (g *Gate) LimitRates() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quotas = &quotas{buckets: map[target]*Bucket{}}
}

// exceeds reports whether a call exceeds a quota of the account.
func (g *Gate) exceeds(s *Service, r *Request) bool {
	g.mu.Lock()
	q := g.quotas
	g.mu.Unlock()
	return q != nil && s.Draws != nil && !q.admit(s.Name, s.Draws(r), time.Now())
}
