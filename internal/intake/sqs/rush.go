package sqs

import (
	"sync"
	"time"
)

// dry is how long a receive has to have waited in vain, and no urgent notice to have come,
// for the queue to count as empty: long beside what SQS takes to answer where there are
// messages (some ten milliseconds within a region), short beside a two-minute notice.
const dry = 250 * time.Millisecond

// rush is while urgent notices come, are in hand with what is to be done ahead of them, or
// are likely to be on the queue. That all who receive have messages in hand is no sign that
// there are no others; that one of them waits for more is.
type rush struct {
	begins func() (over func()) // Options.Rush; nil: nobody asks

	mu   sync.Mutex
	over func()    // nil: there is none
	last time.Time // when an urgent notice last came
	held int       // of those that came, which are in hand
	vain int       // receives that have waited for dry
}

// comes notes that an urgent notice has come, and that it is in hand until the function
// that it returns is called.
func (r *rush) comes() (dealt func()) {
	if r.begins == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.held = time.Now(), r.held+1
	if r.over == nil {
		r.over = r.begins()
	}
	time.AfterFunc(dry, r.look)
	return func() {
		r.mu.Lock()
		r.held--
		r.mu.Unlock()
		r.look()
	}
}

// waits notes that a receive has begun, until the function that it returns is called.
func (r *rush) waits() (answered func()) {
	in, isAnswered := 0, false
	timer := time.AfterFunc(dry, func() {
		r.mu.Lock()
		if !isAnswered {
			in = 1
			r.vain++
		}
		r.mu.Unlock()
		r.look()
	})
	return func() {
		timer.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		isAnswered = true
		r.vain -= in
	}
}

// look ends the rush if the queue seems empty.
func (r *rush) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil && r.held == 0 && r.vain > 0 && time.Since(r.last) >= dry {
		r.over()
		r.over = nil
	}
}
