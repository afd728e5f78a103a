package bench

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// stormSight is what the API server told of a storm.
type stormSight struct {
	mu       sync.Mutex
	there    int
	recorded map[string]moment
	cordoned map[string]moment
	asked    map[string]leave
	stop     context.CancelFunc
}

// moment is when something was seen, and the revision of the cluster that made
// it true: revisions of nodes and pods come from one counter, so that they tell
// what was first whichever watch was faster.
type moment struct {
	at       time.Time
	revision uint64
}

// leave is how a pod was asked to stop.
type leave struct {
	moment
	end   time.Time
	grace int64
}

// watchStorm watches nodes, pods and records, of which it is sent the metadata only, in
// protobuf, since the API server drops who is slow: the label that excludes a node from
// balancers is written with what cordons it.
func (r *rig) watchStorm(nodes int) *stormSight {
	r.Helper()
	s := &stormSight{recorded: map[string]moment{}, cordoned: map[string]moment{}, asked: map[string]leave{}}
	ctx, stop := context.WithCancel(r.Context())
	s.stop = stop
	all, err := metadata.NewForConfig(rest.CopyConfig(r.cluster.RESTConfig()))
	r.must(err)
	for of, note := range map[schema.GroupVersionResource]func(*metav1.PartialObjectMetadata, moment){
		corev1.SchemeGroupVersion.WithResource("nodes"): s.node, corev1.SchemeGroupVersion.WithResource("pods"): s.pod,
		v1alpha1.GroupVersion.WithResource("interruptions"): s.record,
	} {
		go s.follow(ctx, all.Resource(of), note)
	}
	r.until("the watches to know the world", time.Minute, func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.there >= nodes*(1+podsPerNode), fmt.Errorf("%d objects", s.there)
	})
	return s
}

// follow watches objects of a kind, and goes on where it was when the API server
// ends the watch, as it does with one that falls behind.
func (s *stormSight) follow(ctx context.Context, of metadata.Getter, note func(*metav1.PartialObjectMetadata, moment)) {
	last := ""
	for ctx.Err() == nil {
		w, err := of.Watch(ctx, metav1.ListOptions{ResourceVersion: last})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				last = "" // too old: all over again, of which the first sight counts
				continue
			}
			last = o.ResourceVersion
			revision, _ := strconv.ParseUint(last, 10, 64)
			s.mu.Lock()
			switch e.Type {
			case watch.Deleted:
			case watch.Added:
				s.there++
				fallthrough
			default:
				note(o, moment{time.Now(), revision})
			}
			s.mu.Unlock()
		}
		w.Stop()
	}
}

func (s *stormSight) record(o *metav1.PartialObjectMetadata, now moment) {
	if _, known := s.recorded[o.Name]; !known {
		s.recorded[o.Name] = now
	}
}

func (s *stormSight) node(o *metav1.PartialObjectMetadata, now moment) {
	_, excluded := o.Labels[v1alpha1.LabelExcludeBalancers]
	if _, known := s.cordoned[o.Name]; excluded && !known {
		s.cordoned[o.Name] = now
	}
}

func (s *stormSight) pod(o *metav1.PartialObjectMetadata, now moment) {
	if _, known := s.asked[o.Name]; o.DeletionTimestamp != nil && !known {
		s.asked[o.Name] = leave{now, o.DeletionTimestamp.Time, *cmp.Or(o.DeletionGracePeriodSeconds, new(int64))}
	}
}

func (s *stormSight) counts() (cordoned, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.cordoned), len(s.asked)
}

func (s *stormSight) lastRecord() moment { return s.last(s.recorded) }
func (s *stormSight) lastCordon() moment { return s.last(s.cordoned) }

func (s *stormSight) last(of map[string]moment) moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last moment
	for _, m := range of {
		if m.revision > last.revision {
			last = m
		}
	}
	return last
}

func (s *stormSight) lastAsked() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last time.Time
	for _, l := range s.asked {
		if l.at.After(last) {
			last = l.at
		}
	}
	return last
}

// before counts the pods that were asked to stop before a revision.
func (s *stormSight) before(revision uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.asked {
		if l.revision < revision {
			n++
		}
	}
	return n
}

// hurried counts the pods that got less than their whole grace before the
// deadline: all could have had it.
func (s *stormSight) hurried(deadline time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.asked {
		if l.grace < corev1.DefaultTerminationGracePeriodSeconds || l.end.After(deadline) {
			n++
		}
	}
	return n
}
