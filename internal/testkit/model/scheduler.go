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

// Grain is the resolution of all times, so that a difference of a few nanoseconds does not
// change the order of events.
const Grain = 10 * time.Millisecond

// Scheduler runs events in order. Use it within one synctest bubble; all events run on the
// goroutine that calls Run.
type Scheduler struct {
	// Rand is the random source; only the goroutine of Run may use it.
	Rand *rand.Rand
	// Admit decides when and how a request is answered.
	Admit func(*Request)

	ahead  time.Duration // how far the clock has jumped
	events eventQueue
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

// New returns a Scheduler with a random source from the seed.
func New(seed uint64) *Scheduler {
	return &Scheduler{Rand: rand.New(rand.NewPCG(seed, 0)), bell: make(chan struct{}, 1)}
}

// Now is the simulated time.
func (c *Scheduler) Now() time.Time { return time.Now().Add(c.ahead) }

// Jump moves the clock forward: events that were due in between run late.
func (c *Scheduler) Jump(d time.Duration) { c.ahead += d.Truncate(Grain) }

// Chance is true with the probability p.
func (c *Scheduler) Chance(p float64) bool { return p > 0 && c.Rand.Float64() < p }

// Between returns a random duration.
func (c *Scheduler) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(c.Rand.Int64N(int64(most-least)))
}

// At schedules an event at a time, or now if that is past. The name orders events at the same
// time.
func (c *Scheduler) At(at time.Time, name string, do func()) {
	c.seq++
	at = at.Add(Grain - 1).Truncate(Grain)
	heap.Push(&c.events, entry{at: at, name: name, seq: c.seq, do: do})
}

// After schedules an event after a duration.
func (c *Scheduler) After(d time.Duration, name string, do func()) { c.At(c.Now().Add(d), name, do) }

// Go runs a task on another goroutine; then runs as an event after it has returned.
func (c *Scheduler) Go(name string, task func(), then func()) {
	go func() {
		task()
		c.mu.Lock()
		c.ended = append(c.ended, ended{name, then})
		c.mu.Unlock()
		c.ring()
	}()
}

// Submit submits a request and waits for its answer.
func (c *Scheduler) Submit(r *Request) error {
	r.answer = make(chan error, 1)
	c.mu.Lock()
	c.arrived = append(c.arrived, r)
	c.mu.Unlock()
	c.ring()
	return <-r.answer
}

func (c *Scheduler) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// Run runs all events until a time, or until stop returns true.
func (c *Scheduler) Run(until time.Time, stop func() bool) {
	for {
		c.collect()
		if stop() {
			return
		}
		now := c.Now()
		if len(c.events) > 0 && !c.events[0].at.After(now) {
			next, _ := heap.Pop(&c.events).(entry)
			next.do()
			continue
		}
		if !now.Before(until) {
			return
		}
		wait := until.Sub(now)
		if len(c.events) > 0 {
			wait = min(wait, c.events[0].at.Sub(now))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.bell:
			timer.Stop()
		}
	}
}

// collect accepts what goroutines have submitted, in an order that does not depend on their
// scheduling.
func (c *Scheduler) collect() {
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

// entry is a scheduled event.
type entry struct {
	at   time.Time
	name string
	seq  int
	do   func()
}

// eventQueue is a heap of scheduled events.
type eventQueue []entry

func (a eventQueue) Len() int      { return len(a) }
func (a eventQueue) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a eventQueue) Less(i, j int) bool {
	return cmp.Or(a[i].at.Compare(a[j].at), cmp.Compare(a[i].name, a[j].name), cmp.Compare(a[i].seq, a[j].seq)) < 0
}

// Push implements heap.Interface.
func (a *eventQueue) Push(x any) {
	if e, ok := x.(entry); ok {
		*a = append(*a, e)
	}
}

// Pop implements heap.Interface.
func (a *eventQueue) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

type actorKey struct{}

// WithActor sets the name of the actor that makes the requests of a context. An actor never
// makes the same request twice at the same time.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

func actorOf(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}
