package model

import (
	"cmp"
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// Grain is what all moments are multiples of, so that a difference of a few
// nanoseconds does not change the order of things.
const Grain = 10 * time.Millisecond

// Conductor says what happens next. It is to be used within one synctest bubble,
// and all that it runs is run by the goroutine that calls Run.
type Conductor struct {
	// Rand is what chance is drawn from, by the conductor's goroutine only.
	Rand *rand.Rand
	// Admit says when and how a request is answered.
	Admit func(*Request)

	ahead  time.Duration // how far the clock has jumped
	agenda agenda
	seq    int

	mu      sync.Mutex
	arrived []*Request
	ended   []ended
	bell    chan struct{}
}

// ended is a task that has returned.
type ended struct {
	name string
	then func()
}

// New returns a Conductor whose chance is made by the seed.
func New(seed uint64) *Conductor {
	return &Conductor{Rand: rand.New(rand.NewPCG(seed, 0)), bell: make(chan struct{}, 1)}
}

// Now is the time of the model.
func (c *Conductor) Now() time.Time { return time.Now().Add(c.ahead) }

// Jump moves the clock forward at once: what was due meanwhile happens late.
func (c *Conductor) Jump(d time.Duration) { c.ahead += d.Truncate(Grain) }

// Chance is true with the probability p.
func (c *Conductor) Chance(p float64) bool { return p > 0 && c.Rand.Float64() < p }

// Between draws a duration.
func (c *Conductor) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(c.Rand.Int64N(int64(most-least)))
}

// At has something done at a moment, or now if that is past. The name decides
// between what is due at the same moment.
func (c *Conductor) At(at time.Time, name string, do func()) {
	c.seq++
	at = at.Add(Grain - 1).Truncate(Grain)
	heap.Push(&c.agenda, entry{at: at, name: name, seq: c.seq, do: do})
}

// After has something done later.
func (c *Conductor) After(d time.Duration, name string, do func()) { c.At(c.Now().Add(d), name, do) }

// Go runs a task beside the conductor; then is called by the conductor once it
// has returned.
func (c *Conductor) Go(name string, task func(), then func()) {
	go func() {
		task()
		c.mu.Lock()
		c.ended = append(c.ended, ended{name, then})
		c.mu.Unlock()
		c.ring()
	}()
}

// Submit hands in a request and waits for its answer.
func (c *Conductor) Submit(r *Request) error {
	r.answer = make(chan error, 1)
	c.mu.Lock()
	c.arrived = append(c.arrived, r)
	c.mu.Unlock()
	c.ring()
	return <-r.answer
}

func (c *Conductor) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// Run does all that is due until a moment, or until stop says so.
func (c *Conductor) Run(until time.Time, stop func() bool) {
	for {
		c.collect()
		if stop() {
			return
		}
		now := c.Now()
		if len(c.agenda) > 0 && !c.agenda[0].at.After(now) {
			next, _ := heap.Pop(&c.agenda).(entry)
			next.do()
			continue
		}
		if !now.Before(until) {
			return
		}
		wait := until.Sub(now)
		if len(c.agenda) > 0 {
			wait = min(wait, c.agenda[0].at.Sub(now))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.bell:
			timer.Stop()
		}
	}
}

// collect takes in what goroutines have handed in, in an order that does not
// depend on how they were scheduled.
func (c *Conductor) collect() {
	for {
		synctest.Wait()
		c.mu.Lock()
		arrived, done := c.arrived, c.ended
		c.arrived, c.ended = nil, nil
		c.mu.Unlock()
		if len(arrived)+len(done) == 0 {
			return
		}
		slices.SortStableFunc(done, func(a, b ended) int { return cmp.Compare(a.name, b.name) })
		for _, d := range done {
			d.then()
		}
		slices.SortStableFunc(arrived, func(a, b *Request) int { return cmp.Compare(a.String(), b.String()) })
		for _, r := range arrived {
			c.Admit(r)
		}
	}
}

// entry is something that is due.
type entry struct {
	at   time.Time
	name string
	seq  int
	do   func()
}

// agenda is a heap of what is due.
type agenda []entry

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(a[i].at.Compare(a[j].at), cmp.Compare(a[i].name, a[j].name), cmp.Compare(a[i].seq, a[j].seq)) < 0
}

// Push and Pop are the heap's.
func (a *agenda) Push(x any) {
	if e, ok := x.(entry); ok {
		*a = append(*a, e)
	}
}

// Pop takes the last entry away.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

type actorKey struct{}

// WithActor names who makes the requests of a context. No actor makes the same
// request twice at the same time.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

func actorOf(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}
