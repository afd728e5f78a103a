package bench

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// observer watches nodes and pods.
type observer struct {
	mu       sync.Mutex
	there    int // number of objects seen
	cordoned map[string]moment
	evicted  map[string]departed
	stop     context.CancelFunc
}

// moment is when a change was seen, and its resource version. One etcd counter issues all resource
// versions, so they order events of different watches.
type moment struct {
	at      time.Time
	version uint64
}

// departed is how a pod was evicted.
type departed struct {
	moment
	end   time.Time
	grace int64
}

// observe starts the watches and returns when they have seen the whole world. The pod watch
// receives metadata only: the API server drops watches that are too slow.
func (r *rig) observe() *observer {
	r.Helper()
	o := &observer{cordoned: map[string]moment{}, evicted: map[string]departed{}}
	ctx, stop := context.WithCancel(r.Context())
	o.stop = stop
	r.Cleanup(stop)
	config := rest.CopyConfig(r.cluster.RESTConfig())
	config.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(config)
	r.must(err)
	pods, err := metadata.NewForConfig(r.cluster.RESTConfig())
	r.must(err)
	go o.follow(ctx, kube.CoreV1().Nodes().Watch, o.node)
	go o.follow(ctx, pods.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Watch, o.pod)
	want := r.world.nodes + r.world.pods()
	r.until("the watches to begin", time.Minute, func() (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.there >= want, fmt.Errorf("seen %d of %d objects", o.there, want)
	})
	return o
}

// follow watches objects of a kind. When the API server ends the watch, it resumes.
func (o *observer) follow(ctx context.Context, begin func(context.Context, metav1.ListOptions) (watch.Interface, error), note func(metav1.Object, runtime.Object, moment)) {
	last := ""
	for ctx.Err() == nil {
		w, err := begin(ctx, metav1.ListOptions{ResourceVersion: last})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		for e := range w.ResultChan() {
			m, err := meta.Accessor(e.Object)
			if err != nil {
				last = "" // expired: start from the current state
				continue
			}
			last = m.GetResourceVersion()
			version, _ := strconv.ParseUint(last, 10, 64)
			o.mu.Lock()
			if e.Type == watch.Added {
				o.there++
			}
			if e.Type == watch.Added || e.Type == watch.Modified {
				note(m, e.Object, moment{time.Now(), version})
			}
			o.mu.Unlock()
		}
		w.Stop()
	}
}

func (o *observer) node(_ metav1.Object, object runtime.Object, now moment) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	if _, known := o.cordoned[n.Name]; n.Spec.Unschedulable && !known {
		o.cordoned[n.Name] = now
	}
}

func (o *observer) pod(m metav1.Object, _ runtime.Object, now moment) {
	if _, known := o.evicted[m.GetName()]; m.GetDeletionTimestamp() != nil && !known {
		o.evicted[m.GetName()] = departed{
			moment: now, end: m.GetDeletionTimestamp().Time, grace: *cmp.Or(m.GetDeletionGracePeriodSeconds(), new(int64)),
		}
	}
}

func (o *observer) counts() (cordoned, evicted int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.cordoned), len(o.evicted)
}

// of returns when a node was cordoned and when its first pod was evicted.
func (o *observer) of(node string, pods []string) (cordoned, evicted time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, pod := range pods {
		if d, known := o.evicted[pod]; known && (evicted.IsZero() || d.at.Before(evicted)) {
			evicted = d.at
		}
	}
	return o.cordoned[node].at, evicted
}

func (o *observer) lastCordon() moment {
	o.mu.Lock()
	defer o.mu.Unlock()
	var last moment
	for _, m := range o.cordoned {
		if m.version > last.version {
			last = m
		}
	}
	return last
}

// evictions returns the times of the first and the last eviction.
func (o *observer) evictions() (first, last time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.evicted {
		if first.IsZero() || d.at.Before(first) {
			first = d.at
		}
		if d.at.After(last) {
			last = d.at
		}
	}
	return first, last
}

// evictedBefore counts the pods that were evicted before a resource version.
func (o *observer) evictedBefore(version uint64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, d := range o.evicted {
		if d.version < version {
			n++
		}
	}
	return n
}

// shortGrace counts pods with less than their full grace period before the deadline. Outside a
// storm every pod has enough time.
func (o *observer) shortGrace(deadline time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, d := range o.evicted {
		if d.grace < corev1.DefaultTerminationGracePeriodSeconds || d.end.After(deadline) {
			n++
		}
	}
	return n
}
