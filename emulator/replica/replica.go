// Package replica answers the reads of an eventually consistent service. A read can meet a replica
// that does not have the last changes yet, and the next read an older one. See the Amazon EC2
// Developer Guide, "Eventual consistency in the Amazon EC2 API".
package replica

import (
	"math/rand/v2"
	"time"
)

// Lag is the age of what a read returns. The zero value is none.
type Lag struct {
	// Most is the age, and with Random its limit.
	Most time.Duration
	// Random draws the age for each read of each resource; nil: it is always Most. The caller's
	// lock guards it.
	Random *rand.Rand
}

// draw is the lag of one resource in one read. Half of the reads meet a current replica.
func (l Lag) draw() time.Duration {
	if l.Random == nil || l.Most == 0 {
		return l.Most
	}
	return max(0, time.Duration(l.Random.Int64N(int64(2*l.Most)+1))-l.Most)
}

// Versions holds resources as they were during the last lag. It is not safe for concurrent use. A
// value must not change after it is put.
type Versions[T any] struct {
	lag  Lag
	past map[string][]version[T] // by id, oldest first
}

// version is a resource from a time on.
type version[T any] struct {
	from  time.Time
	value T
	gone  bool
}

// New makes Versions without resources.
func New[T any](lag Lag) *Versions[T] {
	return &Versions[T]{lag: lag, past: map[string][]version[T]{}}
}

// SetLag changes the lag of reads. A longer lag does not restore versions that are dropped already.
func (v *Versions[T]) SetLag(lag Lag) { v.lag = lag }

// Put records a new or changed resource.
func (v *Versions[T]) Put(id string, value T) { v.add(id, version[T]{value: value}) }

// Delete records that a resource is gone.
func (v *Versions[T]) Delete(id string) { v.add(id, version[T]{gone: true}) }

func (v *Versions[T]) add(id string, next version[T]) {
	next.from = time.Now()
	list := append(v.past[id], next)
	for len(list) > 1 && !list[1].from.After(next.from.Add(-v.lag.Most)) {
		list = list[1:]
	}
	v.past[id] = list
}

// Get returns a resource as one replica has it; false: the replica does not have it.
func (v *Versions[T]) Get(id string) (T, bool) {
	list := v.past[id]
	asOf := time.Now().Add(-v.lag.draw())
	i := len(list) - 1
	for i >= 0 && list[i].from.After(asOf) {
		i--
	}
	var none T
	switch {
	case i < 0:
		return none, false
	case list[i].gone:
		if i == len(list)-1 && !list[i].from.After(time.Now().Add(-v.lag.Most)) {
			delete(v.past, id)
		}
		return none, false
	}
	return list[i].value, true
}

// All returns every resource that a read shows, in no order.
func (v *Versions[T]) All() []T {
	var out []T
	for id := range v.past {
		if value, ok := v.Get(id); ok {
			out = append(out, value)
		}
	}
	return out
}
