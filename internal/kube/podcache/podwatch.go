// Package podcache watches the pods of single nodes, as a kubelet does. Each interrupted
// node has one watch, selected by spec.nodeName. Memory thus grows with the number of
// interrupted nodes and not with the size of the cluster.
package podcache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// maxOpening bounds how many watches are opened at the same time. After an API server
// restarts, every watch opens again, and the API server rejects what exceeds its queues.
const maxOpening = 8

// Watcher watches the pods of the nodes that callers ask about.
type Watcher struct {
	// ctx bounds all watches. The context of a single call does not: a caller may cancel
	// its context as soon as the call returns.
	ctx     context.Context
	client  rest.Interface
	changed func(node string)
	decode  runtime.ClientNegotiator
	opening *semaphore.Weighted

	mu    sync.Mutex
	nodes map[string]*nodeWatch
}

// New returns a Watcher whose watches end with ctx. It calls changed, from any goroutine,
// when the pods of a watched node may have changed; changed may block. The client must be
// one of API group core/v1.
func New(ctx context.Context, client rest.Interface, changed func(node string)) *Watcher {
	return &Watcher{
		ctx: ctx, client: client, changed: changed,
		decode:  runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), corev1.SchemeGroupVersion),
		opening: semaphore.NewWeighted(maxOpening), nodes: map[string]*nodeWatch{},
	}
}

// Pods returns the pods bound to a node, and whether all of them are known. The first call
// for a node starts its watch and returns false; the Watcher calls changed once it has
// listed the pods. The watch ends with Forget. Callers share the pods: do not change them.
func (w *Watcher) Pods(_ context.Context, node string) ([]*corev1.Pod, bool, error) {
	w.mu.Lock()
	watched, ok := w.nodes[node]
	if !ok {
		watched = w.start(node)
		w.nodes[node] = watched
	}
	w.mu.Unlock()

	pods, known := watched.list()
	return pods, known, nil
}

// Await returns when the pods of a watched node are known, or when ctx ends.
func (w *Watcher) Await(ctx context.Context, node string) {
	if watched := w.watchOf(node); watched != nil {
		select {
		case <-watched.known:
		case <-ctx.Done():
		}
	}
}

// Current reports whether a watch of the node's pods is open that continues from the list.
// If it returns false, pods that were bound to the node since the list may be missing.
func (w *Watcher) Current(node string) bool {
	watched := w.watchOf(node)
	return watched != nil && watched.open.Load()
}

// watchOf returns the watch of a node, or nil.
func (w *Watcher) watchOf(node string) *nodeWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[node]
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

func (w *Watcher) start(node string) *nodeWatch {
	ctx, stop := context.WithCancel(w.ctx)
	started := newNodeWatch(func() { w.changed(node) }, stop)
	go (&stream{nodeWatch: started, client: w.client, node: node, decode: w.decode, opening: w.opening}).run(ctx)
	return started
}

// nodeWatch holds the pods of one node.
type nodeWatch struct {
	changed func()
	stop    context.CancelFunc
	known   chan struct{} // closed after the first list

	open atomic.Bool // whether a watch is open

	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

func newNodeWatch(changed func(), stop context.CancelFunc) *nodeWatch {
	return &nodeWatch{changed: changed, stop: stop, known: make(chan struct{}), pods: map[types.UID]*corev1.Pod{}}
}

// list returns the pods, and whether all of them are known.
func (n *nodeWatch) list() ([]*corev1.Pod, bool) {
	select {
	case <-n.known:
	default:
		return nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.AppendSeq(make([]*corev1.Pod, 0, len(n.pods)), maps.Values(n.pods)), true
}

// put stores a new or changed pod.
func (n *nodeWatch) put(pod *corev1.Pod) {
	n.mu.Lock()
	n.pods[pod.UID] = slim(pod)
	n.mu.Unlock()
	n.changed()
}

// remove deletes a pod by its UID: a younger pod may have the same name.
func (n *nodeWatch) remove(pod *corev1.Pod) {
	n.mu.Lock()
	delete(n.pods, pod.UID)
	n.mu.Unlock()
	n.changed()
}

// replace stores the pods of a list. Only the goroutine of the watch calls it.
func (n *nodeWatch) replace(pods map[types.UID]*corev1.Pod) {
	n.mu.Lock()
	n.pods = pods
	n.mu.Unlock()
	select {
	case <-n.known:
	default:
		close(n.known)
	}
	n.changed()
}
