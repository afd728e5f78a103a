// Package podwatch watches the pods of single nodes, as a kubelet does: one
// watch per doomed node, selected by spec.nodeName, so that memory grows with
// the nodes that are going away and not with the cluster.
package podwatch

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
)

// abreast is how many watches are opened at the same time, or listed anew for: all that were
// held back are wanted at once, and the API server refuses what goes beyond its queue.
const abreast = 8

// Watcher watches the pods of the nodes it was asked about.
type Watcher struct {
	client  rest.Interface
	changed func(node string)
	calm    *calm.Calm
	opening *semaphore.Weighted // a place for each watch that is being opened

	mu    sync.Mutex
	nodes map[string]*nodeWatch
}

// New returns a Watcher that calls changed, from any goroutine, whenever the
// pods of a node that it watches may have changed. The client is one of API group
// core/v1, and speaks protobuf. While it is not calm, changes are told late: pods that
// are asked to stop change twice each, and who asks others to has no use for that.
func New(client rest.Interface, changed func(node string), calm *calm.Calm) *Watcher {
	return &Watcher{client: client, changed: changed, calm: calm, opening: semaphore.NewWeighted(abreast), nodes: map[string]*nodeWatch{}}
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

// Current reports whether the pods of a node that is watched are followed, and not
// only known as they were when they were listed. If not, they are from now on, however
// much else there is to do, and changed is called once they are.
func (w *Watcher) Current(node string) bool {
	w.mu.Lock()
	watched, ok := w.nodes[node]
	w.mu.Unlock()
	return ok && watched.current()
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
	begun := &nodeWatch{changed: func() { w.changed(node) }, pods: map[types.UID]packed{}, known: make(chan struct{}), wanted: make(chan struct{}), stop: stop}
	go (&stream{nodeWatch: begun, client: w.client, node: node, calm: w.calm, opening: w.opening}).run(ctx)
	return begun
}
