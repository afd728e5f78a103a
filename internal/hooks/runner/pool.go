package runner

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

// resultLifetime is how long the pool keeps a result. If the status write fails, the
// next reconcile asks for the result again.
const resultLifetime = 10 * time.Minute

// webhookCall is an HTTP request that the pool makes in the background.
type webhookCall struct {
	webhook v1beta1.Webhook
	subject hooks.Subject
	// key is the value of the Idempotency-Key header.
	key string
	// record is the Interruption to reconcile when the call ends.
	record string
	// queueTimeout bounds the wait for a free slot plus the request itself;
	// timeout bounds the request alone.
	queueTimeout, timeout time.Duration
	// through is the time of the last timeline entry in a notification.
	through metav1.MicroTime
}

// callResult is the result of a webhookCall.
type callResult struct {
	ok bool
	// message describes the result. It never contains the URL.
	message string
	// after is the Retry-After of the response; 0 if it has none.
	after time.Duration
	// through is copied from the call.
	through metav1.MicroTime
	// read is when the result was first read.
	read time.Time
	// over is when the call ended.
	over time.Time
}

// pool runs webhook calls with bounded concurrency, in total and per
// destination, so that one slow destination cannot block the others. A queued
// webhookCall holds no connection.
type pool struct {
	post func(context.Context, *webhookCall) callResult
	wake func(record string)
	ctx  context.Context
	stop context.CancelFunc
	all  chan struct{}
	each int
	busy sync.WaitGroup

	mu           sync.Mutex
	destinations map[string]chan struct{}
	// calls are by id; the value is nil while the call runs.
	calls map[string]*callResult
}

func newPool(concurrency int, wake func(string), post func(context.Context, *webhookCall) callResult) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	return &pool{
		post: post, wake: wake, ctx: ctx, stop: cancel,
		all: make(chan struct{}, concurrency), each: max(1, concurrency/4),
		destinations: map[string]chan struct{}{}, calls: map[string]*callResult{},
	}
}

// close cancels all calls and waits until they end.
func (d *pool) close() {
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.busy.Wait()
}

// ask returns the result of the call with that id and whether the pool knows
// that id. The result is nil while the call runs. The first read sets
// callResult.read to now.
func (d *pool) ask(id string, now time.Time) (*callResult, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, known := d.calls[id]
	if a == nil {
		return nil, known
	}
	if a.read.IsZero() {
		a.read = now
	}
	read := *a
	return &read, true
}

// start runs the call in the background unless the pool already has that id.
// After close it does nothing.
func (d *pool) start(id string, c *webhookCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	if _, known := d.calls[id]; known || d.ctx.Err() != nil {
		return
	}
	where := destinationOf(&c.webhook)
	place, ok := d.destinations[where]
	if !ok {
		place = make(chan struct{}, d.each)
		d.destinations[where] = place
	}
	d.calls[id] = nil
	d.busy.Go(func() { d.run(id, c, place) })
}

func (d *pool) run(id string, c *webhookCall, place chan struct{}) {
	a := d.queue(c, place)
	if !a.ok && d.ctx.Err() != nil {
		return // the call failed because this process is shutting down
	}
	a.over, a.through = time.Now(), c.through
	d.mu.Lock()
	d.calls[id] = &a
	d.mu.Unlock()
	d.wake(c.record)
}

// queue waits for a slot of the destination, then for a slot of the pool, and
// makes the call.
func (d *pool) queue(c *webhookCall, place chan struct{}) callResult {
	ctx, cancel := context.WithTimeout(d.ctx, c.queueTimeout)
	defer cancel()
	for _, turns := range []chan struct{}{place, d.all} {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-ctx.Done():
			return callResult{message: describeWebhook(&c.webhook) + " was not called within " + c.queueTimeout.String() + ": all call slots were in use"}
		}
	}
	ctx, cancel = context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return d.post(ctx, c)
}

// sweep deletes results that are older than resultLifetime.
func (d *pool) sweep() {
	for id, a := range d.calls {
		if a != nil && time.Since(a.over) > resultLifetime {
			delete(d.calls, id)
		}
	}
}
