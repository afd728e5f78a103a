// Package herald tells of what happened by Kubernetes Events, after what is urgent
// has been done. An Event costs the API server as much as an eviction; where a
// thousand nodes are drained at once, theirs would take the time that pods need.
package herald

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
)

const (
	// latest is how long an Event is held back at most.
	latest = time.Minute
	// apart is the time between two Events, which bounds their share of what the
	// API server does.
	apart = 4 * time.Millisecond
	// most is how many Events are held back; those beyond are told at once.
	most = 20000
)

// Herald is an events.EventRecorder that waits for calm.
type Herald struct {
	inner  events.EventRecorder
	scheme *runtime.Scheme
	calm   *calm.Calm

	mu     sync.Mutex
	queue  []told
	arrive chan struct{} // has room for one
}

// told is an Event that is held back. Of the objects only references are held, which
// is what an Event has of them: thousands wait while many nodes go at once, and an
// Interruption has many times the size.
type told struct {
	about, related            runtime.Object
	typ, reason, action, note string
	args                      []any
	at                        time.Time
}

// New returns a Herald that tells by a recorder of objects that a scheme knows. It
// has to be started.
func New(inner events.EventRecorder, scheme *runtime.Scheme, calm *calm.Calm) *Herald {
	return &Herald{inner: inner, scheme: scheme, calm: calm, arrive: make(chan struct{}, 1)}
}

// Eventf takes an Event in.
func (h *Herald) Eventf(about, related runtime.Object, typ, reason, action, note string, args ...any) {
	t := told{about: h.refer(about), typ: typ, reason: reason, action: action, note: note, args: args, at: time.Now()}
	if related != nil {
		t.related = h.refer(related)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) >= most {
		h.tell(t)
		return
	}
	h.queue = append(h.queue, t)
	select {
	case h.arrive <- struct{}{}:
	default:
	}
}

// refer returns a reference to an object, which a recorder takes in its place; or a
// copy, of which the recorder says what it lacks.
func (h *Herald) refer(o runtime.Object) runtime.Object {
	if ref, err := reference.GetReference(h.scheme, o); err == nil {
		return ref
	}
	return o.DeepCopyObject()
}

func (h *Herald) tell(t told) {
	h.inner.Eventf(t.about, t.related, t.typ, t.reason, t.action, t.note, t.args...)
}

// Start tells until ctx is over, and then what is left, at once.
func (h *Herald) Start(ctx context.Context) error {
	for {
		first, ok := h.first()
		if !ok {
			select {
			case <-ctx.Done():
				return nil
			case <-h.arrive:
			}
			continue
		}
		patience := time.NewTimer(time.Until(first.at.Add(latest)))
		select {
		case <-ctx.Done():
		case <-h.calm.Here():
		case <-patience.C:
		}
		patience.Stop()
		if ctx.Err() == nil {
			h.tell(h.take())
		}
		select {
		case <-ctx.Done():
			h.rest()
			return nil
		case <-time.After(apart):
		}
	}
}

// first returns the Event that is told next, if there is one.
func (h *Herald) first() (told, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return told{}, false
	}
	return h.queue[0], true
}

// take takes the first Event out of the queue; there is one, and Start alone takes any.
func (h *Herald) take() told {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.queue[0]
	h.queue[0] = told{}
	if h.queue = h.queue[1:]; len(h.queue) == 0 {
		h.queue = nil // thousands may have waited
	}
	return first
}

// rest tells what is left.
func (h *Herald) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.queue {
		h.tell(t)
	}
	h.queue = nil
}
