// Package podwatch watches the pods of single nodes, as a kubelet does: one
// watch per doomed node, selected by spec.nodeName, so that memory grows with
// the nodes that are going away and not with the cluster.
package podwatch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Watcher watches the pods of the nodes it was asked about.
type Watcher struct {
	client  rest.Interface
	changed func(node string)

	mu    sync.Mutex
	nodes map[string]*nodeWatch
}

// New returns a Watcher that calls changed, from any goroutine, whenever the
// pods of a node that it watches may have changed. The client is one of API group
// core/v1, and speaks protobuf.
func New(client rest.Interface, changed func(node string)) *Watcher {
	return &Watcher{client: client, changed: changed, nodes: map[string]*nodeWatch{}}
}

// Pods returns the pods bound to a node, and whether all of them are known.
// The first call for a node begins to watch it and returns false; changed is
// called once the pods are known. The pods are shared: do not change them. The
// watch ends with ctx or with Forget.
func (w *Watcher) Pods(ctx context.Context, node string) ([]*corev1.Pod, bool, error) {
	w.mu.Lock()
	watched, ok := w.nodes[node]
	if !ok {
		watched = w.begin(ctx, node)
		w.nodes[node] = watched
	}
	w.mu.Unlock()

	return watched.list()
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

func (w *Watcher) begin(ctx context.Context, node string) *nodeWatch {
	ctx, stop := context.WithCancel(ctx)
	begun := &nodeWatch{changed: func() { w.changed(node) }, pods: map[types.UID]packed{}, known: make(chan struct{}), stop: stop}
	go (&stream{nodeWatch: begun, client: w.client, node: node}).run(ctx)
	return begun
}
