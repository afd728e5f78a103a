package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// watcher feeds a World from the API server and the machines, and delivers its moments sequentially
// and in order.
type watcher struct {
	moment func(Moment)

	mu      sync.Mutex // guards world and the order of moments
	world   *World
	changed chan struct{} // closed and replaced at every observation
	// groups returns the changes of Auto Scaling groups since the last call; nil: there are none.
	groups func(*World) []Moment
}

func newWatcher(moment func(Moment)) *watcher {
	return &watcher{moment: moment, world: NewWorld(), changed: make(chan struct{})}
}

// do lets f read or change the world, and delivers its moments. It first records what groups did
// before, because f may depend on it.
func (w *watcher) do(f func(*World) []Moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var moments []Moment
	if w.groups != nil {
		moments = w.groups(w.world)
	}
	moments = append(moments, f(w.world)...)
	for _, m := range append(moments, w.world.CheckRequirements(time.Now())...) {
		w.moment(m)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// holds reports whether a condition holds now and, if not, what to wait for.
func (w *watcher) holds(c Condition) (bool, string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok, text := c.Holds(w.world)
	return ok, text, w.changed
}

// when is the time of a moment; false while it is unknown.
func (w *watcher) when(m When) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.world.when(m)
}

// machine records EC2's changes in the world.
func (w *watcher) machine(c ec2.Change) {
	now := time.Now()
	w.do(func(world *World) []Moment {
		in := c.Instance
		world.Machine(in.ID, in.State == ec2.ShuttingDown || in.State == ec2.Terminated)
		switch c.What {
		case ec2.Launched:
			what := describeMachine(in.ID, in.Type, in.Zone, in.Lifecycle())
			switch group := in.Tags[groupTag]; {
			case in.Tags[tagNodePool] != "":
				return world.Provisioned(now, karpenterName, in.ID, in.PrivateDNSName, what)
			case group != "":
				return world.Provisioned(now, "the group "+group, in.ID, in.PrivateDNSName, what)
			}
		case ec2.PowerOff:
			return world.PowerLost(now, in.ID)
		case ec2.Booted:
			world.PowerRestored(in.ID)
		}
		return nil
	})
}

func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, fmt.Errorf("registering Kubernetes' types: %w", err)
	}
	if err := v1beta1.AddToScheme(s); err != nil {
		return nil, fmt.Errorf("registering Lifeboat's types: %w", err)
	}
	return s, nil
}

// watchedKind is a kind of object, and the function that records it in the world.
type watchedKind struct {
	object client.Object
	see    func(obj any, gone bool)
}

// nodeClaim is an empty NodeClaim. This module does not import Karpenter's Go types.
func nodeClaim() *unstructured.Unstructured {
	claim := &unstructured.Unstructured{}
	claim.SetAPIVersion("karpenter.sh/v1")
	claim.SetKind("NodeClaim")
	return claim
}

// watch starts to observe and returns once all existing objects are recorded. stop ends it. It
// observes NodeClaims only if Karpenter runs.
func (w *watcher) watch(ctx context.Context, config *rest.Config, claims bool) (stop func(), err error) {
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	c, err := cache.New(config, cache.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("watching the cluster: %w", err)
	}
	all := []watchedKind{
		{&corev1.Node{}, handlerFor(w, func(world *World, t time.Time, o *corev1.Node, gone bool) []Moment { return world.Node(t, o, gone) })},
		{&corev1.Pod{}, handlerFor(w, func(world *World, t time.Time, o *corev1.Pod, gone bool) []Moment { return world.Pod(t, o, gone) })},
		{&batchv1.Job{}, handlerFor(w, func(world *World, t time.Time, o *batchv1.Job, gone bool) []Moment { return world.Job(t, o, gone) })},
		{&v1beta1.Interruption{}, handlerFor(w, func(world *World, t time.Time, o *v1beta1.Interruption, gone bool) []Moment {
			if gone {
				return nil
			}
			return world.Record(t, o)
		})},
		{&v1beta1.NodeGroup{}, handlerFor(w, func(world *World, t time.Time, o *v1beta1.NodeGroup, gone bool) []Moment {
			return world.NodeGroup(t, o, gone)
		})},
		{&appsv1.Deployment{}, handlerFor(w, recordDeployment)},
		{&appsv1.StatefulSet{}, handlerFor(w, recordStatefulSet)},
		{&appsv1.DaemonSet{}, handlerFor(w, recordDaemonSet)},
	}
	if claims {
		all = append(all, watchedKind{nodeClaim(), handlerFor(w, func(world *World, t time.Time, o *unstructured.Unstructured, gone bool) []Moment {
			return world.Claim(t, o, gone)
		})})
	}
	for _, one := range all {
		informer, err := c.GetInformer(ctx, one.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching the cluster: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { one.see(obj, false) },
			UpdateFunc: func(_, obj any) { one.see(obj, false) },
			DeleteFunc: func(obj any) { one.see(obj, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watching the cluster: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Start(ctx) // it ends with ctx; after an error, conditions do not hold
	}()
	stop = func() { cancel(); <-ended }
	if !c.WaitForCacheSync(ctx) {
		stop()
		return nil, fmt.Errorf("watching the cluster: %w", context.Cause(ctx))
	}
	return stop, nil
}

// handlerFor returns a handler for one kind of object.
func handlerFor[T client.Object](w *watcher, see func(*World, time.Time, T, bool) []Moment) func(obj any, gone bool) {
	return func(obj any, gone bool) {
		now := time.Now()
		if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		o, ok := obj.(T)
		if !ok {
			return
		}
		w.do(func(world *World) []Moment { return see(world, now, o, gone) })
	}
}

func recordDeployment(w *World, t time.Time, d *appsv1.Deployment, gone bool) []Moment {
	st := d.Status
	recordWanted(w, t, "Deployment", d, d.Spec.Selector, d.Spec.Replicas, gone)
	w.Deployment(d, gone)
	w.Workload("Deployment", d.Namespace, d.Name, gone || st.ObservedGeneration >= d.Generation &&
		st.UpdatedReplicas == wanted(d.Spec.Replicas) && st.ReadyReplicas == st.UpdatedReplicas && st.UnavailableReplicas == 0)
	return nil
}

func recordStatefulSet(w *World, t time.Time, s *appsv1.StatefulSet, gone bool) []Moment {
	recordWanted(w, t, "StatefulSet", s, s.Spec.Selector, s.Spec.Replicas, gone)
	w.Workload("StatefulSet", s.Namespace, s.Name, gone || s.Status.ObservedGeneration >= s.Generation &&
		s.Status.ReadyReplicas == wanted(s.Spec.Replicas))
	return nil
}

func recordDaemonSet(w *World, _ time.Time, d *appsv1.DaemonSet, gone bool) []Moment {
	w.Workload("DaemonSet", d.Namespace, d.Name, gone || d.Status.ObservedGeneration >= d.Generation &&
		d.Status.NumberReady >= d.Status.DesiredNumberScheduled)
	return nil
}

// recordWanted records the wanted number of pods of a workload; zero for a deleted one.
func recordWanted(w *World, t time.Time, kind string, o client.Object, selector *metav1.LabelSelector, replicas *int32, gone bool) {
	which, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return // the API server rejects invalid selectors
	}
	n := int(wanted(replicas))
	if gone {
		n = 0
	}
	w.Wanted(t, kind, o.GetNamespace(), o.GetName(), which, n)
}

// wanted is the number of replicas; the default is one.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
