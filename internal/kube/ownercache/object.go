package ownercache

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
)

// The watched kinds.
const (
	kindReplicaSet = "ReplicaSet"
	kindDeployment = "Deployment"
)

// minReportInterval is the least time between two reports about one object. A
// Deployment with pods on hundreds of interrupted nodes changes many times a
// second, and each report requeues all those nodes.
const minReportInterval = time.Second

// key identifies an object.
type key struct{ kind, namespace, name string }

// object is a watched object and the store of its reflector. It is much smaller
// than an informer, of which there would be thousands.
type object struct {
	w    *Watcher
	stop context.CancelFunc

	// The rest is guarded by the Watcher's lock.

	nodes         map[string]bool // the nodes that need it
	known         bool
	is            metav1.Object // nil: it does not exist or is unknown
	lastReport    time.Time     // time of the last report
	reportPending bool          // a report is scheduled
}

var _ cache.ReflectorStore = (*object)(nil)

// join adds a node to the object's nodes, and starts the watch of a new object.
// The caller holds the lock.
func (w *Watcher) join(node string, k key) *object {
	o, ok := w.objects[k]
	if !ok {
		ctx, stop := context.WithCancel(w.ctx)
		o = &object{w: w, stop: stop, nodes: map[string]bool{}}
		w.objects[k] = o
		go w.reflector(k, o).RunWithContext(ctx)
	}
	o.nodes[node] = true
	return o
}

// leave ends the watch if no other node needs the object. The caller holds the
// lock.
func (w *Watcher) leave(node string, k key) {
	o, ok := w.objects[k]
	if !ok {
		return
	}
	delete(o.nodes, node)
	if len(o.nodes) == 0 {
		o.stop()
		delete(w.objects, k)
	}
}

// reflector creates the reflector of one object.
func (w *Watcher) reflector(k key, o *object) *cache.Reflector {
	if k.kind == kindDeployment {
		lw := listWatch(w.kube.AppsV1().Deployments(k.namespace), k.name, o.forbidden)
		return cache.NewReflector(lw, &appsv1.Deployment{}, o, 0)
	}
	lw := listWatch(w.kube.AppsV1().ReplicaSets(k.namespace), k.name, o.forbidden)
	return cache.NewReflector(lw, &appsv1.ReplicaSet{}, o, 0)
}

// resource is client-go's interface for each kind.
type resource[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// listWatch lists and watches the object of that name, and calls forbidden if
// the list is denied.
func listWatch[L runtime.Object](of resource[L], name string, refused func()) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return reflector.Persistent(reflector.ListFirst{ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			list, err := of.List(ctx, o)
			if apierrors.IsForbidden(err) {
				refused()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return of.Watch(ctx, o)
		},
	}})
}

// Add stores the object.
func (o *object) Add(is any) error { o.set(is); return nil }

// Update stores the object.
func (o *object) Update(is any) error { o.set(is); return nil }

// Delete stores that the object does not exist.
func (o *object) Delete(any) error { o.set(nil); return nil }

// Replace stores the result of a list: one object, or none.
func (o *object) Replace(all []any, _ string) error {
	if len(all) == 0 {
		o.set(nil)
		return nil
	}
	o.set(all[0])
	return nil
}

// Resync does nothing.
func (o *object) Resync() error { return nil }

// forbidden treats an unreadable object as absent: waiting for it would block a
// drain forever.
func (o *object) forbidden() {
	o.w.mu.Lock()
	seen := o.known
	o.w.mu.Unlock()
	if !seen {
		o.set(nil)
	}
}

func (o *object) set(is any) {
	is = slim(is)
	o.w.mu.Lock()
	next, _ := is.(metav1.Object)
	if o.known && equality.Semantic.DeepEqual(o.is, next) {
		o.w.mu.Unlock()
		return
	}
	o.known, o.is = true, next
	wait := minReportInterval - time.Since(o.lastReport)
	now := wait <= 0 && !o.reportPending
	if wait > 0 && !o.reportPending {
		o.reportPending = true
		time.AfterFunc(wait, o.report)
	}
	o.w.mu.Unlock()
	if now {
		o.report()
	}
}

// report requeues all nodes that need the object.
func (o *object) report() {
	o.w.mu.Lock()
	o.lastReport, o.reportPending = time.Now(), false
	nodes := slices.Collect(maps.Keys(o.nodes))
	o.w.mu.Unlock()
	for _, node := range nodes {
		o.w.changed(node)
	}
}

// slim drops the fields that planning does not read.
func slim(is any) any {
	switch full := is.(type) {
	case *appsv1.ReplicaSet:
		status := full.Status
		status.Conditions = nil
		meta := slimMeta(&full.ObjectMeta)
		meta.ResourceVersion = full.ResourceVersion // shows whether its status is older than a surge
		return &appsv1.ReplicaSet{
			ObjectMeta: meta,
			Spec:       appsv1.ReplicaSetSpec{Replicas: full.Spec.Replicas, Selector: full.Spec.Selector},
			Status:     status,
		}
	case *appsv1.Deployment:
		status := full.Status
		status.Conditions = nil
		return &appsv1.Deployment{
			ObjectMeta: slimMeta(&full.ObjectMeta),
			Spec:       appsv1.DeploymentSpec{Replicas: full.Spec.Replicas, Strategy: full.Spec.Strategy, Paused: full.Spec.Paused},
			Status:     status,
		}
	}
	return nil
}

func slimClaim(full *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: slimMeta(&full.ObjectMeta),
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: full.Spec.AccessModes},
	}
}

func slimMeta(full *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: full.Name, Namespace: full.Namespace, UID: full.UID, Generation: full.Generation,
		DeletionTimestamp: full.DeletionTimestamp, OwnerReferences: full.OwnerReferences,
	}
}
