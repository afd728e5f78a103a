package nodenotice

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodenotices,verbs=list;watch;delete
// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodenotices/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

const (
	// workers is how many NodeNotices are recorded at the same time.
	workers = 16
	// minInterval is the least time between two recordings of one NodeNotice, so
	// that an agent that changes its own without end causes few writes.
	minInterval = time.Second
	// followerDelay is how much later than the leader another replica records,
	// so that it usually finds everything recorded.
	followerDelay = 2 * time.Second
	// statusDelay is how long the status waits, so that it does not delay the
	// notices of other nodes.
	statusDelay = 3 * time.Second
	// resync is the time between passes over an unchanged NodeNotice. It is
	// shorter than the time for which a poll.Deduper remembers.
	resync = 10 * time.Minute
	// rejectedResync is the same for a NodeNotice that was not accepted.
	rejectedResync = 30 * time.Second
)

// Options configure a Source.
type Options struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads without a cache.
	Live client.Reader
	// Informers are those of the cache.
	Informers cache.Informers
	// Nodes finds the node of an instance in the cache.
	Nodes intake.NodeIndex
	// Recorder makes notices durable.
	Recorder poll.Recorder
	// Elected is closed when this replica becomes the leader. Every replica
	// records notices; only the leader writes the status and deletes.
	Elected <-chan struct{}
	// Metrics count what is recorded; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Source records the notices of NodeNotices. It implements intake.Source.
type Source struct {
	o        Options
	throttle *intake.Throttle
	queue    workqueue.TypedRateLimitingInterface[string]

	mu     sync.Mutex
	states map[string]*state // by name of the NodeNotice
}

// state is what the source remembers of one NodeNotice. Only the worker that has
// its name uses it.
type state struct {
	uid     types.UID
	deduper *poll.Deduper
	reader  *switchReader
	// generation is the newest one, and seen is when it was first seen.
	generation int64
	seen       time.Time
	// done is the generation that was last recorded or rejected, and doneAt is when.
	done   int64
	doneAt time.Time
}

// switchReader is a reader that can be replaced.
type switchReader struct{ client.Reader }

// New returns the source.
func New(o Options) *Source {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 10*time.Second)
	return &Source{
		o: o, throttle: intake.NewThrottle(o.Clock), states: map[string]*state{},
		queue: workqueue.NewTypedRateLimitingQueue(backoff),
	}
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run records notices until ctx is done, and returns nil. It retries all failures.
func (s *Source) Run(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("source", Name))
	stop := context.AfterFunc(ctx, s.queue.ShutDown)
	defer stop()
	s.o.Metrics.Up(Name, false)
	for {
		err := s.listen(ctx)
		if err == nil {
			break
		}
		s.explain(ctx, "watch", "cannot watch NodeNotices, retrying", "error", err.Error(),
			"advice", "install the CRDs of this release: helm show crds CHART | kubectl apply --server-side --force-conflicts -f -")
		if !sleep.For(ctx, 10*time.Second) {
			return nil
		}
	}
	s.o.Metrics.Up(Name, true)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for s.work(ctx) {
			}
		})
	}
	group.Go(func() { s.onElected(ctx) })
	group.Wait()
	return nil
}

// listen adds the watches of NodeNotices, and of what decides whether a Node is
// that of its NodeNotice.
func (s *Source) listen(ctx context.Context) error {
	notices, err := s.o.Informers.GetInformer(ctx, &v1beta1.NodeNotice{})
	if err != nil {
		return fmt.Errorf("watching NodeNotices: %w", err)
	}
	nodes, err := s.o.Informers.GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return fmt.Errorf("watching Nodes: %w", err)
	}
	for _, watch := range []struct {
		informer cache.Informer
		changed  func(before, after any) bool
	}{{notices, noticeChanged}, {nodes, nodeChanged}} {
		if _, err := watch.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    s.enqueue,
			DeleteFunc: s.enqueue,
			UpdateFunc: func(before, after any) {
				if watch.changed(before, after) {
					s.enqueue(after)
				}
			},
		}); err != nil {
			return fmt.Errorf("adding a watch: %w", err)
		}
	}
	return nil
}

// noticeChanged reports whether the spec changed. A new status does not matter.
func noticeChanged(before, after any) bool {
	a, isNotice := before.(*v1beta1.NodeNotice)
	b, ok := after.(*v1beta1.NodeNotice)
	return isNotice && ok && (a.UID != b.UID || a.Generation != b.Generation)
}

// nodeChanged reports whether the node became another instance's.
func nodeChanged(before, after any) bool {
	a, isNode := before.(*corev1.Node)
	b, ok := after.(*corev1.Node)
	return isNode && ok && (a.UID != b.UID || a.Spec.ProviderID != b.Spec.ProviderID)
}

// enqueue adds the NodeNotice of an object. A Node has the name of its NodeNotice.
func (s *Source) enqueue(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if o, ok := object.(client.Object); ok {
		s.queue.Add(o.GetName())
	}
}

// onElected takes all NodeNotices again when this replica becomes the leader.
func (s *Source) onElected(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.o.Elected:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.states {
		s.queue.Add(name)
	}
}

func (s *Source) leads() bool {
	select {
	case <-s.o.Elected:
		return true
	default:
		return false
	}
}

// work takes one NodeNotice, and reports whether there can be more.
func (s *Source) work(ctx context.Context) bool {
	name, shutdown := s.queue.Get()
	if shutdown {
		return false
	}
	defer s.queue.Done(name)
	again, err := s.take(ctx, name)
	if err != nil {
		if ctx.Err() == nil {
			s.explain(ctx, "take "+err.Error(), "cannot record a NodeNotice, retrying", "node", name, "error", err.Error())
		}
		s.queue.AddRateLimited(name)
		return true
	}
	s.queue.Forget(name)
	if again > 0 {
		s.queue.AddAfter(name, again)
	}
	return true
}

// explain logs at most one line a minute for each key.
func (s *Source) explain(ctx context.Context, key, message string, names ...any) {
	if held, ok := s.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}
