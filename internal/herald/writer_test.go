package herald_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lifeboat-dev/lifeboat/internal/herald"
)

// write has a Writer write what the story tells, to a cluster that fails with err,
// and returns the Events and the verbs of the requests.
func write(t *testing.T, fails func() error, story func(w *herald.Writer)) (events []eventsv1.Event, verbs []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		kube.PrependReactor("*", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
			verbs = append(verbs, a.GetVerb())
			err := fails()
			return err != nil, nil, err
		})
		w := herald.NewWriter(kube.EventsV1(), scheme.Scheme)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Start(ctx) }()
		story(w)
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
		events = list.Items
	})
	return events, verbs
}

func works() error { return nil }

func evict(w *herald.Writer, name string) {
	pod, node := &corev1.Pod{}, &corev1.Node{}
	pod.Namespace, pod.Name, node.Name = "default", name, "node"
	w.Eventf(pod, node, "Normal", "Evicted", "Evict", "pod %s goes", name)
	synctest.Wait()
}

func TestAnEventIsWritten(t *testing.T) {
	events, _ := write(t, works, func(w *herald.Writer) { evict(w, "a") })
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	e := events[0]
	if e.Note != "pod a goes" || e.Reason != "Evicted" || e.Action != "Evict" || e.Type != "Normal" || e.ReportingController != "lifeboat" ||
		e.Regarding.Kind != "Pod" || e.Regarding.Name != "a" || e.Related == nil || e.Related.Name != "node" || e.Namespace != "default" || e.EventTime.IsZero() {
		t.Errorf("wrote %+v", e)
	}
}

func TestARepeatedEventIsOneMoreOfItsSeries(t *testing.T) {
	events, verbs := write(t, works, func(w *herald.Writer) {
		for range 5 {
			evict(w, "a")
			time.Sleep(time.Minute)
		}
		evict(w, "b")
	})
	if len(events) != 2 || events[0].Series == nil || events[0].Series.Count != 4 || events[1].Series != nil {
		t.Errorf("wrote %+v", events)
	}
	if want := []string{"create", "patch", "patch", "create"}; !slices.Equal(verbs, want) {
		t.Errorf("asked to %v, want %v", verbs, want)
	}
}

func TestASeriesEnds(t *testing.T) {
	events, _ := write(t, works, func(w *herald.Writer) {
		evict(w, "a")
		time.Sleep(10 * time.Minute)
		evict(w, "a")
	})
	if len(events) != 2 {
		t.Errorf("wrote %d events, want 2", len(events))
	}
}

func TestAnEventThatWasLostIsWrittenAnew(t *testing.T) {
	n := 0
	events, _ := write(t, func() error {
		if n++; n == 2 { // the patch
			return apierrors.NewNotFound(eventsv1.Resource("events"), "a")
		}
		return nil
	}, func(w *herald.Writer) {
		evict(w, "a")
		time.Sleep(time.Second)
		evict(w, "a")
	})
	if len(events) != 2 {
		t.Errorf("wrote %d events, want 2", len(events))
	}
}

func TestAnEventWaitsForTheAPIServer(t *testing.T) {
	var back time.Time
	away := func() error {
		if time.Now().Before(back) {
			return errors.New("connection refused")
		}
		return nil
	}
	events, _ := write(t, away, func(w *herald.Writer) {
		back = time.Now().Add(time.Minute)
		evict(w, "a")
		time.Sleep(90 * time.Second)
	})
	if len(events) != 1 {
		t.Errorf("wrote %d events", len(events))
	}
	events, verbs := write(t, func() error { return apierrors.NewForbidden(eventsv1.Resource("events"), "", nil) }, func(w *herald.Writer) {
		evict(w, "a")
		time.Sleep(time.Hour)
	})
	if len(events) != 0 || len(verbs) != 1 {
		t.Errorf("asked %d times for what is refused", len(verbs))
	}
}

func TestWhatIsToldAtTheEndIsWritten(t *testing.T) {
	events, _ := write(t, works, func(w *herald.Writer) {
		for i := range 100 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i)}}
			w.Eventf(pod, nil, "Normal", "Evicted", "Evict", "goes")
			time.Sleep(time.Nanosecond)
		}
	})
	if len(events) != 100 {
		t.Errorf("wrote %d events, want 100", len(events))
	}
}
