package errand

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// keptFor is how long an answer is kept: what was made of it may not have been
// written down, and is then asked for again.
const keptFor = 10 * time.Minute

// call is a webhook that is made in the background.
type call struct {
	webhook v1alpha1.Webhook
	body    []byte
	// key is the Idempotency-Key.
	key string
	// record is woken once it is over.
	record string
	// patience is how long it may wait for its turn and take, and limit how long
	// it may take.
	patience, limit time.Duration
	// through is the last entry that a notification tells.
	through metav1.MicroTime
}

// answer is what came of a call.
type answer struct {
	ok bool
	// message says what came of it, without its URL.
	message string
	// after is how long the server asks to be left alone; 0: it does not say.
	after time.Duration
	// through is the call's.
	through metav1.MicroTime
	// read is when it was first asked for.
	read time.Time
	// over is when it came.
	over time.Time
}

// desk makes calls, so many at the same time, and few of them to one place: a
// place that does not answer keeps no other waiting. Those that wait for their
// turn hold no connection.
type desk struct {
	post   func(context.Context, *call) answer
	wake   func(record string)
	abroad context.Context
	stop   context.CancelFunc
	all    chan struct{}
	each   int
	busy   sync.WaitGroup

	mu     sync.Mutex
	places map[string]chan struct{}
	// calls are by id; the answer of one that is under way is nil.
	calls map[string]*answer
}

func newDesk(abreast int, wake func(string), post func(context.Context, *call) answer) *desk {
	ctx, cancel := context.WithCancel(context.Background())
	return &desk{
		post: post, wake: wake, abroad: ctx, stop: cancel,
		all: make(chan struct{}, abreast), each: max(1, abreast/4),
		places: map[string]chan struct{}{}, calls: map[string]*answer{},
	}
}

// close ends all calls and waits until they have ended.
func (d *desk) close() {
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.busy.Wait()
}

// ask returns what came of the call with that id, as first read at now, and
// whether there is such a call. Nil: it is under way.
func (d *desk) ask(id string, now time.Time) (*answer, bool) {
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

// start makes a call, unless there is one of that id. After close it does
// nothing.
func (d *desk) start(id string, c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	if _, known := d.calls[id]; known || d.abroad.Err() != nil {
		return
	}
	where := placeOf(&c.webhook)
	place, ok := d.places[where]
	if !ok {
		place = make(chan struct{}, d.each)
		d.places[where] = place
	}
	d.calls[id] = nil
	d.busy.Go(func() { d.run(id, c, place) })
}

func (d *desk) run(id string, c *call, place chan struct{}) {
	a := d.queue(c, place)
	if !a.ok && d.abroad.Err() != nil {
		return // it failed because this process ends
	}
	a.over, a.through = time.Now(), c.through
	d.mu.Lock()
	d.calls[id] = &a
	d.mu.Unlock()
	d.wake(c.record)
}

// queue waits for a turn at the place and then among all, and makes the call.
func (d *desk) queue(c *call, place chan struct{}) answer {
	ctx, cancel := context.WithTimeout(d.abroad, c.patience)
	defer cancel()
	for _, turns := range []chan struct{}{place, d.all} {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-ctx.Done():
			return answer{message: whoOf(&c.webhook) + " was not called within " + c.patience.String() + ": other calls to it, or to others, take too long"}
		}
	}
	ctx, cancel = context.WithTimeout(ctx, c.limit)
	defer cancel()
	return d.post(ctx, c)
}

// sweep forgets answers that nobody will ask for any more.
func (d *desk) sweep() {
	for id, a := range d.calls {
		if a != nil && time.Since(a.over) > keptFor {
			delete(d.calls, id)
		}
	}
}
