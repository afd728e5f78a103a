package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lifeboat-dev/lifeboat/internal/kube/events"
)

// write runs a test with a Recorder whose requests fail with the result of
// fails. It returns the written Events and the verbs of all requests.
func write(t *testing.T, fails func() error, emit func(r *events.Recorder)) (written []eventsv1.Event, verbs []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		kube.PrependReactor("*", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
			verbs = append(verbs, a.GetVerb())
			err := fails()
			return err != nil, nil, err
		})
		r := events.NewRecorder(kube.EventsV1(), scheme.Scheme)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		emit(r)
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		all, err := kube.Tracker().List(eventsv1.SchemeGroupVersion.WithResource("events"), eventsv1.SchemeGroupVersion.WithKind("Event"), "")
		if err != nil {
			t.Fatal(err)
		}
		list, _ := all.(*eventsv1.EventList)
		written = list.Items
	})
	return written, verbs
}

func works() error { return nil }

func evict(r *events.Recorder, name string) {
	pod, node := &corev1.Pod{}, &corev1.Node{}
	pod.Namespace, pod.Name, node.Name = "default", name, "node"
	r.Eventf(pod, node, "Normal", "Evicted", "Evict", "pod %s goes", name)
	synctest.Wait()
}

func TestEventIsWritten(t *testing.T) {
	written, _ := write(t, works, func(r *events.Recorder) { evict(r, "a") })
	if len(written) != 1 {
		t.Fatalf("%d Events, want 1", len(written))
	}
	e := written[0]
	if e.Note != "pod a goes" || e.Reason != "Evicted" || e.Action != "Evict" || e.Type != "Normal" || e.ReportingController != "lifeboat" ||
		e.Regarding.Kind != "Pod" || e.Regarding.Name != "a" || e.Related == nil || e.Related.Name != "node" || e.Namespace != "default" || e.EventTime.IsZero() {
		t.Errorf("wrote %+v", e)
	}
}

func TestRepeatedEventJoinsSeries(t *testing.T) {
	written, verbs := write(t, works, func(r *events.Recorder) {
		for range 5 {
			evict(r, "a")
			time.Sleep(time.Minute)
		}
		evict(r, "b")
	})
	if len(written) != 2 || written[0].Series == nil || written[0].Series.Count != 4 || written[1].Series != nil {
		t.Errorf("wrote %+v", written)
	}
	if want := []string{"create", "patch", "patch", "create"}; !slices.Equal(verbs, want) {
		t.Errorf("requests %v, want %v", verbs, want)
	}
}

func TestSeriesEnds(t *testing.T) {
	written, _ := write(t, works, func(r *events.Recorder) {
		evict(r, "a")
		time.Sleep(10 * time.Minute)
		evict(r, "a")
	})
	if len(written) != 2 {
		t.Errorf("wrote %d Events, want 2", len(written))
	}
}

func TestRepeatedEventIsRecreatedAfterDeletion(t *testing.T) {
	n := 0
	written, _ := write(t, func() error {
		if n++; n == 2 { // the patch
			return apierrors.NewNotFound(eventsv1.Resource("events"), "a")
		}
		return nil
	}, func(r *events.Recorder) {
		evict(r, "a")
		time.Sleep(time.Second)
		evict(r, "a")
	})
	if len(written) != 2 {
		t.Errorf("wrote %d Events, want 2", len(written))
	}
}

func TestEventWaitsForAPIServer(t *testing.T) {
	var back time.Time
	away := func() error {
		if time.Now().Before(back) {
			return errors.New("connection refused")
		}
		return nil
	}
	written, _ := write(t, away, func(r *events.Recorder) {
		back = time.Now().Add(time.Minute)
		evict(r, "a")
		time.Sleep(90 * time.Second)
	})
	if len(written) != 1 {
		t.Errorf("wrote %d Events, want 1", len(written))
	}
}

func TestRejectedEventIsNotRetried(t *testing.T) {
	written, verbs := write(t, func() error { return apierrors.NewForbidden(eventsv1.Resource("events"), "", nil) }, func(r *events.Recorder) {
		evict(r, "a")
		time.Sleep(time.Hour)
	})
	if len(written) != 0 || len(verbs) != 1 {
		t.Errorf("%d requests for an Event that is forbidden, want 1", len(verbs))
	}
}

// TestMetrics fills the queue of a Recorder whose first Event the API server refuses.
func TestMetrics(t *testing.T) {
	const queued = 8192
	registry := prometheus.NewRegistry()
	expect := func(waiting, full, refused int) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP lifeboat_dropped_events_total Kubernetes Events that were not written, by reason: queueFull, noAnswer (of the API server) or refused.
# TYPE lifeboat_dropped_events_total counter
lifeboat_dropped_events_total{reason="noAnswer"} 0
lifeboat_dropped_events_total{reason="queueFull"} %d
lifeboat_dropped_events_total{reason="refused"} %d
# HELP lifeboat_waiting_events Kubernetes Events that wait until they are written. Lifeboat writes at most 20 a second, and keeps 8192.
# TYPE lifeboat_waiting_events gauge
lifeboat_waiting_events %d
`, full, refused, waiting))); err != nil {
			t.Error(err)
		}
	}
	tries := 0
	write(t, func() error {
		if tries++; tries == 1 {
			return apierrors.NewForbidden(eventsv1.Resource("events"), "", nil)
		}
		time.Sleep(time.Minute)
		return nil
	}, func(r *events.Recorder) {
		if err := r.Register(registry); err != nil {
			t.Fatal(err)
		}
		evict(r, "refused")
		evict(r, "slow")
		expect(0, 0, 1)
		for i := range queued + 3 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i)}}
			r.Eventf(pod, nil, "Normal", "Evicted", "Evict", "goes")
		}
		expect(queued, 3, 1)
	})
}

func TestShutdownEventsAreWritten(t *testing.T) {
	written, _ := write(t, works, func(r *events.Recorder) {
		for i := range 100 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i)}}
			r.Eventf(pod, nil, "Normal", "Evicted", "Evict", "goes")
			time.Sleep(time.Nanosecond)
		}
	})
	if len(written) != 100 {
		t.Errorf("wrote %d Events, want 100", len(written))
	}
}
