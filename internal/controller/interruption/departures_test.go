package interruption

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// manyPods are pods of one node.
func manyPods(n int) (names []string, objects []client.Object) {
	for i := range n {
		name := fmt.Sprint("web-", i)
		names = append(names, name)
		objects = append(objects, pod(name))
	}
	return names, objects
}

// Three hundred pods leave in one pass. Each keeps its departure and its grace.
func TestEachPodOfManyHasItsDeparture(t *testing.T) {
	for _, n := range []int{10, 110, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			names, pods := manyPods(n)
			w := newWorld(t, append(pods, recordOf(spot()), node("a", instance))...)
			w.settle(time.Second)
			w.now = w.now.Add(10 * time.Second)
			w.stopped(names...)
			gone := w.now
			w.settle(0)
			d := w.record().Status.Drain
			for _, p := range d.Pods {
				if p.State != v1beta1.PodLeft || p.DepartureTime == nil || p.DepartureTime.Time.Sub(gone).Abs() > time.Second ||
					p.EvictionTime == nil || p.GraceSeconds == nil || *p.GraceSeconds != 30 || *p.SpecGraceSeconds != 30 {
					t.Fatalf("%s: %+v", p.Name, p)
				}
			}
			if len(d.Pods) != n || int(d.PodCounts.Moved) != n {
				t.Errorf("%d pods listed, %d counted", len(d.Pods), d.PodCounts.Moved)
			}
			size, err := json.Marshal(w.record())
			if err != nil || len(size) > 400_000 {
				t.Errorf("a record of %d bytes, %v; etcd takes 1.5 MB", len(size), err)
			}
			t.Logf("%d pods: %d bytes", n, len(size))
		})
	}
}

// The controller is killed after it has asked the pods. Those that go before the next one runs have no time.
func TestDepartureIsUnknownWhereNoControllerRan(t *testing.T) {
	names, pods := manyPods(4)
	w := newWorld(t, append(pods, recordOf(spot()), node("a", instance))...)
	w.settle(time.Second)
	w.now = w.now.Add(5 * time.Second)
	w.stopped(names[0])
	w.settle(0)
	w.now = w.now.Add(5 * time.Second)
	w.stopped(names[1], names[2])
	w.loop = New(w.loop.Options)
	w.settle(0)
	w.now = w.now.Add(5 * time.Second)
	w.stopped(names[3])
	w.settle(0)
	want := map[string]v1beta1.PodReason{
		names[0]: v1beta1.PodReasonDeparted, names[1]: v1beta1.PodReasonDepartureUnseen,
		names[2]: v1beta1.PodReasonDepartureUnseen, names[3]: v1beta1.PodReasonDeparted,
	}
	for _, p := range w.record().Status.Drain.Pods {
		if p.Reason != want[p.Name] || (p.DepartureTime == nil) != (p.Reason == v1beta1.PodReasonDepartureUnseen) {
			t.Errorf("%s: %s, gone at %v; want %s", p.Name, p.Reason, p.DepartureTime, want[p.Name])
		}
	}
}

// The record says that a pod has left, and the cache of the next leader still shows it.
func TestPodThatIsShownAgainIsListedOnce(t *testing.T) {
	in := recordOf(spot())
	left := pod("web-0")
	in.Status.Drain = &v1beta1.DrainStatus{Pods: []v1beta1.PodStatus{{
		Namespace: left.Namespace, Name: left.Name, UID: left.UID, State: v1beta1.PodLeft, Reason: v1beta1.PodReasonDeparted,
	}}}
	w := newWorld(t, in, node("a", instance), left, pod("web-1"))
	w.settle(time.Second)
	seen := map[string]int{}
	for _, p := range w.record().Status.Drain.Pods {
		seen[p.Name]++
	}
	if seen["web-0"] != 1 || seen["web-1"] != 1 {
		t.Errorf("listed %v, want each pod once", seen)
	}
}

// The record cannot be written while pods leave. Their departures are those that the controller saw.
func TestDepartureIsWhenThePodWasMissed(t *testing.T) {
	names, pods := manyPods(2)
	w := newWorld(t, append(pods, recordOf(spot()), node("a", instance))...)
	w.settle(time.Second)
	w.refuses.requests = []string{"patch status Interruption"}
	w.now = w.now.Add(5 * time.Second)
	w.stopped(names...)
	gone := w.now
	for range 10 {
		_ = w.pass(2 * time.Second)
	}
	w.refuses.requests = nil
	w.settle(time.Minute) // the passes back off
	for _, p := range w.record().Status.Drain.Pods {
		if p.DepartureTime == nil || p.DepartureTime.Time.Sub(gone) > 3*time.Second {
			t.Errorf("%+v: want its departure soon after %s", p, gone)
		}
	}
}
