//go:build e2e

package real

import (
	"context"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
)

// endpointCount is the number of ready endpoints of a Service from a time on.
type endpointCount struct {
	At    time.Time
	Ready int
}

// endpointLog records how the ready endpoints of a Service change.
type endpointLog struct {
	mu     sync.Mutex
	slices map[string]map[string]bool // the ready addresses of each EndpointSlice
	seen   []endpointCount
}

// watchEndpoints records the endpoints of a Service until the test ends.
func (s *stage) watchEndpoints(service string) *endpointLog {
	s.t.Helper()
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		s.t.Fatal(err)
	}
	l := &endpointLog{slices: map[string]map[string]bool{}}
	note := func(object any, gone bool) {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok && slice.Labels[discoveryv1.LabelServiceName] == service {
			l.note(time.Now(), slice, gone)
		}
	}
	informer := reflector.NewInformer(
		cache.NewListWatchFromClient(client.DiscoveryV1().RESTClient(), "endpointslices", "default", fields.Everything()),
		&discoveryv1.EndpointSlice{}, 0, cache.Indexers{})
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note(object, false) },
		UpdateFunc: func(_, object any) { note(object, false) },
		DeleteFunc: func(object any) { note(object, true) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(s.t.Context().Done(), handler.HasSynced) {
		s.t.Fatal("the watch of EndpointSlices did not sync")
	}
	return l
}

func (l *endpointLog) note(now time.Time, slice *discoveryv1.EndpointSlice, gone bool) {
	ready := map[string]bool{}
	for i := range slice.Endpoints {
		// Ready is false for a pod that is terminating (EndpointConditions).
		if e := &slice.Endpoints[i]; !gone && (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
			ready[e.Addresses[0]] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slices[slice.Name] = ready
	all := map[string]bool{}
	for _, addresses := range l.slices {
		for address := range addresses {
			all[address] = true
		}
	}
	l.seen = append(l.seen, endpointCount{now, len(all)})
}

// dip is how far the endpoints of a Service fell below the wanted number.
type dip struct {
	Wanted, Lowest int
	Below          time.Duration
}

func (d dip) String() string {
	return fmt.Sprintf("lowest %d of %d endpoints ready, %.1f s below wanted", d.Lowest, d.Wanted, d.Below.Seconds())
}

// between judges the time from one moment to another.
func (l *endpointLog) between(wanted int, from, to time.Time) dip {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := dip{Wanted: wanted, Lowest: wanted}
	for i, c := range l.seen {
		until := to
		if i+1 < len(l.seen) && l.seen[i+1].At.Before(to) {
			until = l.seen[i+1].At
		}
		begin := c.At
		if begin.Before(from) {
			begin = from
		}
		if c.Ready >= wanted || !begin.Before(until) {
			continue
		}
		d.Lowest = min(d.Lowest, c.Ready)
		d.Below += until.Sub(begin)
	}
	return d
}
