package herald

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// lately is for how long an Event of the same reason about the same object is
	// one more of a series, and not another one (as in client-go).
	lately = 6 * time.Minute
	// writers is how many Events are written at the same time, and held how many wait
	// for that; those beyond are lost (as in client-go).
	writers, held = 4, 1000
	// tries is how often the API server is asked to take an Event, retry is the time
	// between, and last is for how long Events are still written at the end.
	tries, retry, last = 12, 10 * time.Second, 5 * time.Second
)

// Writer is an events.EventRecorder that holds no Event once it is written. The one
// of client-go holds each for six minutes, twice, in two KiB, to know a repeated one:
// a quarter of the memory that lifeboatd needs while many nodes go. Here that takes
// a hundred bytes.
type Writer struct {
	client   typedeventsv1.EventsGetter
	scheme   *runtime.Scheme
	instance string
	queue    chan *eventsv1.Event
	seed     maphash.Seed

	mu   sync.Mutex
	told map[uint64]*series
}

// series is an Event that was written, and how often it was repeated.
type series struct {
	namespace, name string
	count           int32
	at              time.Time // the last time
}

// controllerName is who Events are from.
const controllerName = "lifeboat"

// NewWriter returns a Writer of Events about objects that a scheme knows. It has to
// be started.
func NewWriter(client typedeventsv1.EventsGetter, scheme *runtime.Scheme) *Writer {
	host, _ := os.Hostname() // no name is no harm
	return &Writer{
		client: client, scheme: scheme, instance: controllerName + "-" + host,
		queue: make(chan *eventsv1.Event, held), seed: maphash.MakeSeed(), told: map[uint64]*series{},
	}
}

// Eventf has an Event written. It does not wait for that.
func (w *Writer) Eventf(about, related runtime.Object, typ, reason, action, note string, args ...any) {
	regarding, err := reference.GetReference(w.scheme, about)
	if err != nil {
		log.Log.Error(err, "could not tell of an Event about what has no name", "reason", reason)
		return
	}
	now := time.Now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      util.GenerateEventName(regarding.Name, now.UnixNano()),
			Namespace: cmp.Or(regarding.Namespace, metav1.NamespaceDefault),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: controllerName, ReportingInstance: w.instance,
		Type: typ, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...), Regarding: *regarding,
	}
	if related != nil {
		if ref, err := reference.GetReference(w.scheme, related); err == nil {
			event.Related = ref
		}
	}
	select {
	case w.queue <- event:
	default:
		log.Log.V(1).Info("lost an Event: too many wait", "reason", reason, "object", regarding.Name)
	}
}

// Start writes until ctx is over, and then for some seconds what is left.
func (w *Writer) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for range writers {
		group.Go(func() { w.run(ctx) })
	}
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			w.forget(now)
		}
	}
	group.Wait()
	return nil
}

func (w *Writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case event := <-w.queue:
			w.write(ctx, event)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	// What others tell of their own end comes within this while.
	for quiet := time.After(last / 5); ; {
		select {
		case event := <-w.queue:
			w.write(ctx, event)
		case <-quiet:
			return
		}
	}
}

// forget drops the series that have ended.
func (w *Writer) forget(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, s := range w.told {
		if now.Sub(s.at) > lately {
			delete(w.told, key)
		}
	}
}

// write writes an Event, or that there is one more of its series.
func (w *Writer) write(ctx context.Context, event *eventsv1.Event) {
	key := w.key(event)
	w.mu.Lock()
	s, again := w.told[key]
	if again = again && event.EventTime.Sub(s.at) < lately; again {
		s.count++
		s.at = event.EventTime.Time
	} else {
		s = &series{namespace: event.Namespace, name: event.Name, count: 1, at: event.EventTime.Time}
		w.told[key] = s
	}
	now := *s
	w.mu.Unlock()
	if now.count&(now.count-1) != 0 {
		return // of a long series it is told ever less often: of the 2nd, the 4th, the 8th
	}
	for range tries {
		err := w.request(ctx, event, now)
		var answer apierrors.APIStatus
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.As(err, &answer) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err) {
			log.FromContext(ctx).Error(err, "could not write an Event", "reason", event.Reason, "object", event.Regarding.Name)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

func (w *Writer) request(ctx context.Context, event *eventsv1.Event, s series) error {
	if s.count > 1 {
		patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.at)}})
		if err != nil {
			return err
		}
		_, err = w.client.Events(s.namespace).Patch(ctx, s.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	_, err := w.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // it came through, and the answer did not
	}
	return err
}

// key hashes what the Events of a series have in common.
func (w *Writer) key(e *eventsv1.Event) uint64 {
	common := struct {
		typ, reason, action string
		regarding, related  corev1.ObjectReference
	}{typ: e.Type, reason: e.Reason, action: e.Action, regarding: e.Regarding}
	if e.Related != nil {
		common.related = *e.Related
	}
	return maphash.Comparable(w.seed, common)
}
