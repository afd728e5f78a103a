// Package podwatch watches the pods of single nodes, as a kubelet does: one
// watch per doomed node, selected by spec.nodeName, so that memory grows with
// the nodes that are going away and not with the cluster.
package podwatch

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/listwatch"
)

// Watcher watches the pods of the nodes it was asked about.
type Watcher struct {
	kube    kubernetes.Interface
	changed func(node string)

	mu    sync.Mutex
	nodes map[string]*nodeWatch
}

// nodeWatch is the watch of one node.
type nodeWatch struct {
	informer cache.SharedIndexInformer
	known    <-chan struct{} // closed once all pods are
	stop     context.CancelFunc
}

// New returns a Watcher that calls changed, from any goroutine, whenever the
// pods of a node that it watches may have changed.
func New(kube kubernetes.Interface, changed func(node string)) *Watcher {
	return &Watcher{kube: kube, changed: changed, nodes: map[string]*nodeWatch{}}
}

// Pods returns the pods bound to a node, and whether all of them are known.
// The first call for a node begins to watch it and returns false; changed is
// called once the pods are known. The pods are shared: do not change them. The
// watch ends with ctx or with Forget.
func (w *Watcher) Pods(ctx context.Context, node string) ([]*corev1.Pod, bool, error) {
	w.mu.Lock()
	watched, ok := w.nodes[node]
	if !ok {
		begun, err := w.begin(ctx, node)
		if err != nil {
			w.mu.Unlock()
			return nil, false, err
		}
		w.nodes[node], watched = begun, begun
	}
	w.mu.Unlock()

	if !watched.informer.HasSynced() {
		return nil, false, nil
	}
	objects := watched.informer.GetStore().List()
	pods := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods, true, nil
}

// Await returns once the pods of a node that is watched are known, or ctx is
// done.
func (w *Watcher) Await(ctx context.Context, node string) {
	w.mu.Lock()
	watched, ok := w.nodes[node]
	w.mu.Unlock()
	if !ok {
		return
	}
	select {
	case <-watched.known:
	case <-ctx.Done():
	}
}

// Forget ends the watch of a node.
func (w *Watcher) Forget(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched, ok := w.nodes[node]; ok {
		watched.stop()
		delete(w.nodes, node)
	}
}

// Watched returns how many nodes are watched.
func (w *Watcher) Watched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.nodes)
}

func (w *Watcher) begin(ctx context.Context, node string) (*nodeWatch, error) {
	informer := listwatch.NewInformer(w.listWatch(node), &corev1.Pod{}, 0, cache.Indexers{})
	if err := informer.SetTransform(slim); err != nil {
		return nil, fmt.Errorf("watching pods of node %s: %w", node, err)
	}
	notify := func(any) { w.changed(node) }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, DeleteFunc: notify,
		UpdateFunc: func(_, next any) { notify(next) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods of node %s: %w", node, err)
	}
	known := registration.HasSyncedChecker().Done()
	ctx, stop := context.WithCancel(ctx)
	go informer.RunWithContext(ctx)
	go func() {
		// An empty node yields no event, so the end of the list is one.
		select {
		case <-known:
			w.changed(node)
		case <-ctx.Done():
		}
	}()
	return &nodeWatch{informer: informer, known: known, stop: stop}, nil
}

func (w *Watcher) listWatch(node string) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector("spec.nodeName", node).String()
	pods := w.kube.CoreV1().Pods(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return pods.Watch(ctx, o)
		},
	}
	return listFirst{lw}
}

// listFirst lists before it watches, which a cache of the API server answers at
// once. To have the list come as the beginning of a watch would cost up to a
// tenth of a second here: the API server then waits until its cache is known to
// be as new as etcd (Kubernetes docs, "API concepts", streaming lists). A pod
// that is too new for the list is told of by the watch.
type listFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells client-go to list first.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// slim drops what planning does not read.
func slim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec.InitContainers = nil
	}
	return object, nil
}
