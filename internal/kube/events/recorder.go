// Package events writes Kubernetes Events.
package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// QPS limits the requests for Events. 1,000 interrupted nodes make some 5,000 Events
	// within a minute; at this rate they leave the API server to the evictions.
	QPS = 20
	// Burst covers the Events of a few nodes, which users want to see at once.
	Burst = 40
	// maxQueued is how many Events wait; more are dropped.
	maxQueued = 8192
	// seriesTime is how long after an Event a similar one counts as its repetition (as in
	// client-go).
	seriesTime = 6 * time.Minute
	// maxTries and retryDelay bound the retries of an Event while the API server is unreachable.
	maxTries, retryDelay = 12, 10 * time.Second
	// drainTime is the time for writing queued Events after the end of the Recorder's context.
	// lingerTime is the time for Events from other parts that are stopping.
	drainTime, lingerTime = 5 * time.Second, time.Second
)

// Limit returns a copy of a client configuration with the rate limit of Events.
func Limit(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = QPS, Burst, nil
	return config
}

// Recorder is an events.EventRecorder of client-go that writes Events in the background,
// one after the other. client-go's own broadcaster has a goroutine for each Event that
// waits for the rate limiter, and keeps a copy of each for six minutes: 5,000 Events took
// 61 MiB of heap and stacks, and take 4 MiB here.
type Recorder struct {
	client   typedeventsv1.EventsGetter
	scheme   *runtime.Scheme
	instance string
	queue    chan *eventsv1.Event
	seed     maphash.Seed
	series   map[uint64]*series // only Start's goroutine uses it
	dropped  *prometheus.CounterVec
}

// series is an Event that was written, and how often it was repeated.
type series struct {
	namespace, name string
	count           int32
	last            time.Time
}

// controllerName is the reporting controller of all Events.
const controllerName = "lifeboat"

// NewRecorder returns a Recorder of Events about objects that a scheme knows. Its client
// should be limited with Limit. The Recorder is a manager's Runnable.
func NewRecorder(client typedeventsv1.EventsGetter, scheme *runtime.Scheme) *Recorder {
	host, _ := os.Hostname() // the reporting instance may lack the host name
	return &Recorder{
		client: client, scheme: scheme, instance: controllerName + "-" + host,
		queue: make(chan *eventsv1.Event, maxQueued), seed: maphash.MakeSeed(), series: map[uint64]*series{},
		dropped: droppedTotal.NewCounters(),
	}
}

// Eventf queues an Event. It does not block.
func (r *Recorder) Eventf(about, related runtime.Object, typ, reason, action, note string, args ...any) {
	regarding, err := reference.GetReference(r.scheme, about)
	if err != nil {
		log.Log.Error(err, "cannot write an Event: its object has no reference", "reason", reason)
		return
	}
	now := time.Now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      util.GenerateEventName(regarding.Name, now.UnixNano()),
			Namespace: cmp.Or(regarding.Namespace, metav1.NamespaceDefault),
		},
		EventTime: metav1.NewMicroTime(now), ReportingController: controllerName, ReportingInstance: r.instance,
		Type: typ, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...), Regarding: *regarding,
	}
	if related != nil {
		if ref, err := reference.GetReference(r.scheme, related); err == nil {
			event.Related = ref
		}
	}
	select {
	case r.queue <- event:
	default:
		r.dropped.WithLabelValues(droppedQueueFull).Inc()
		log.Log.V(1).Info("dropped an Event: the queue is full", "reason", reason, "object", regarding.Name)
	}
}

// Start writes Events until ctx ends, and then for a few seconds what is left.
func (r *Recorder) Start(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			r.forget(now)
		case event := <-r.queue:
			r.write(ctx, event)
		}
	}
	r.drain(ctx)
	return nil
}

// drain writes what is left, and what other parts report as they stop.
func (r *Recorder) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	linger := time.After(lingerTime)
	for ctx.Err() == nil {
		if len(r.queue) > 0 {
			r.write(ctx, <-r.queue) // no other goroutine receives
			continue
		}
		select {
		case event := <-r.queue:
			r.write(ctx, event)
		case <-linger:
			return
		}
	}
}

// forget deletes the series that have ended.
func (r *Recorder) forget(now time.Time) {
	for key, s := range r.series {
		if now.Sub(s.last) > seriesTime {
			delete(r.series, key)
		}
	}
}

// write creates an Event, or counts it as a repetition. Of a long series it writes the
// 2nd, the 4th, the 8th and so on.
func (r *Recorder) write(ctx context.Context, event *eventsv1.Event) {
	key := r.key(event)
	s := r.series[key]
	if s == nil || event.EventTime.Sub(s.last) >= seriesTime {
		s = &series{}
		r.series[key] = s
	}
	s.count++
	s.last = event.EventTime.Time
	if s.count&(s.count-1) != 0 {
		return
	}
	for range maxTries {
		err := r.request(ctx, event, s)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !retriable(err) {
			r.dropped.WithLabelValues(droppedRefused).Inc()
			log.FromContext(ctx).Error(err, "cannot write an Event", "reason", event.Reason, "object", event.Regarding.Name)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryDelay):
		}
	}
	r.dropped.WithLabelValues(droppedNoAnswer).Inc()
	log.FromContext(ctx).Info("dropped an Event: the API server did not answer", "reason", event.Reason, "object", event.Regarding.Name)
}

// retriable reports whether the API server was unreachable or busy. Other
// Events would fail too, so they may wait.
func retriable(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

func (r *Recorder) request(ctx context.Context, event *eventsv1.Event, s *series) error {
	if s.count > 1 {
		patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}})
		if err != nil {
			return err
		}
		_, err = r.client.Events(s.namespace).Patch(ctx, s.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	s.namespace, s.name = event.Namespace, event.Name
	_, err := r.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // an earlier try succeeded, but its response was lost
	}
	return err
}

// key hashes what the Events of a series have in common.
func (r *Recorder) key(e *eventsv1.Event) uint64 {
	common := struct {
		typ, reason, action string
		regarding, related  corev1.ObjectReference
	}{typ: e.Type, reason: e.Reason, action: e.Action, regarding: e.Regarding}
	if e.Related != nil {
		common.related = *e.Related
	}
	return maphash.Comparable(r.seed, common)
}
