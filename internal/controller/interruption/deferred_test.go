package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// flushing is a world in which transitional changes are deferred, as installed.
func flushing(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, objects...)
	o := w.loop.Options
	o.FlushInterval = status.FlushInterval
	w.loop = New(o)
	return w
}

// writes counts the versions of the Interruption from here on.
func (w *world) writes() (count func() int) {
	last, n := w.record().ResourceVersion, 0
	return func() int {
		if now := w.record().ResourceVersion; now != last {
			last = now
			n++
		}
		return n
	}
}

func TestTransitionalChangesAreWrittenOnFlush(t *testing.T) {
	w := flushing(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"), pod("web-3"))
	if err := w.pass(time.Second); err != nil {
		t.Fatal(err)
	}
	if got := record.Drain(&w.record().Status).PodCounts; got.Leaving != 3 {
		t.Fatalf("pods %+v", got)
	}
	count := w.writes()
	for i, name := range []string{"web-1", "web-2"} { // two pods leave within the interval
		w.stopped(name)
		if err := w.pass(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != 0 {
			t.Fatalf("%d writes after %d pods have left", n, i+1)
		}
		if w.wake == 0 || w.wake > status.FlushInterval {
			t.Errorf("the change is written in %s", w.wake)
		}
	}
	if err := w.pass(w.wake); err != nil {
		t.Fatal(err)
	}
	if n, got := count(), record.Drain(&w.record().Status).PodCounts; n != 1 || got.Moved != 2 || got.Leaving != 1 {
		t.Errorf("%d writes, pods %+v", n, got)
	}
	if !slices.Contains(reasons(w.record().Status), v1beta1.ReasonPodTerminated) {
		t.Error("the timeline does not say that pods have left")
	}
	w.stopped("web-3") // the last one is material: the node is drained
	if err := w.pass(time.Second); err != nil {
		t.Fatal(err)
	}
	if n, got := count(), w.record().Status.Phase; n != 2 || got != v1beta1.PhaseDrained {
		t.Errorf("%d writes, phase %s", n, got)
	}
}

// A crash loses nothing that was deferred: the next process recomputes it.
func TestDeferredStatusIsRecomputedAfterCrash(t *testing.T) {
	w := flushing(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	_ = w.pass(time.Second)
	w.stopped("web-1")
	_ = w.pass(time.Second)
	if got := record.Drain(&w.record().Status).PodCounts; got.Moved != 0 {
		t.Fatalf("written at once: %+v", got)
	}
	w.loop = New(w.loop.Options)
	if err := w.pass(time.Second); err != nil {
		t.Fatal(err)
	}
	if got := record.Drain(&w.record().Status).PodCounts; got.Moved != 1 || got.Total != 2 {
		t.Errorf("pods %+v", got)
	}
}

// A deferred departure is written by the deadline: one that is noticed later counts as lost.
func TestDeferredDepartureIsWrittenByDeadline(t *testing.T) {
	w := flushing(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	_ = w.pass(time.Second)
	w.settle(110 * time.Second) // of two minutes
	w.stopped("web-1")
	_ = w.pass(time.Second)
	if w.wake > 9*time.Second {
		t.Errorf("the change is written in %s, after the deadline", w.wake)
	}
}

// Two sources that report one reclaim cause one decision and one write.
func TestSecondSourceNeedsNoExtraWrite(t *testing.T) {
	w := flushing(t, recordOf(spot()), node("a", instance), pod("web-1"))
	_ = w.pass(time.Second)
	second := spot()
	second.ID, second.Source = "spot-of-the-agent", "imds"
	w.addNotices(second)
	count := w.writes()
	_ = w.pass(50 * time.Millisecond)
	if n := count(); n != 0 {
		t.Errorf("%d writes for the second notice", n)
	}
}

// Eviction requests that hang, as behind a slow admission webhook, are sent once before the pods
// that were not tried yet. From then on they are sent after them.
func TestSlowEvictionsDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := []client.Object{recordOf(spot()), node("a", instance)}
		for i := range 24 {
			pods = append(pods, pod(fmt.Sprintf("slow-%02d", i)))
		}
		w := newWorld(t, append(pods, pod("zz-last"))...)
		asked := time.Duration(-1)
		began := time.Now()
		inner, ok := w.client.(client.WithWatch)
		if !ok {
			t.Fatal("the fake client does not watch")
		}
		o := w.loop.Options
		o.Client = interceptor.NewClient(inner, interceptor.Funcs{
			SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, pod, _ client.Object, _ ...client.SubResourceCreateOption) error {
				if pod.GetName() == "zz-last" {
					w.mu.Lock()
					asked = time.Since(began)
					w.mu.Unlock()
					return nil
				}
				<-ctx.Done() // the webhook's backend is on the interrupted node
				return errors.New("context deadline exceeded")
			},
		})
		w.loop = New(o)
		for range 6 {
			if asked >= 0 {
				break
			}
			w.now = start.Add(time.Since(began))
			if err := w.pass(time.Second); err != nil {
				t.Fatal(err)
			}
			time.Sleep(max(w.wake, time.Millisecond))
		}
		if asked < 0 || asked > 24/evict.MaxPerNode*(evict.Timeout+time.Second) {
			t.Errorf("the pod without a slow webhook was evicted after %s", asked)
		}
	})
}

func TestExpectations(t *testing.T) {
	var e expectations
	e.Replaced("a", "1", start)
	e.Replaced("a", "2", start)
	for version, want := range map[string]bool{"1": true, "2": true} {
		if e.isStale("a", version, start.Add(time.Second)) != want {
			t.Errorf("version %s: stale %t", version, !want)
		}
	}
	if e.isStale("a", "1", start.Add(expectationTimeout)) {
		t.Error("the expectation has no time limit")
	}
	e.Replaced("a", "2", start)
	if e.isStale("a", "3", start) || e.isStale("a", "2", start) {
		t.Error("a newer version does not end the expectation")
	}
	if e.LastWrite("a") != start || !e.LastWrite("b").IsZero() {
		t.Errorf("last writes %s, %s", e.LastWrite("a"), e.LastWrite("b"))
	}
}

// TestExpectationsOfManyNodesEnd replaces a version of each of many nodes, once.
func TestExpectationsOfManyNodesEnd(t *testing.T) {
	var e expectations
	for i := range 1000 {
		e.Replaced(fmt.Sprint("node-", i), "1", start.Add(time.Duration(i)*time.Second))
		if limit := 2 * int(writesKept/time.Second); len(e.objects) > limit {
			t.Fatalf("%d entries after %d nodes", len(e.objects), i+1)
		}
	}
	if !e.isStale("node-999", "1", start.Add(1000*time.Second)) {
		t.Error("a new expectation was removed")
	}
}
