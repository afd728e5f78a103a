package podwatch

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeWatch holds the pods of one node.
type nodeWatch struct {
	changed func()
	stop    context.CancelFunc
	known   chan struct{} // closed after the first list

	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
	open bool // whether a watch is open
}

func newNodeWatch(changed func(), stop context.CancelFunc) *nodeWatch {
	return &nodeWatch{changed: changed, stop: stop, known: make(chan struct{}), pods: map[types.UID]*corev1.Pod{}}
}

func (n *nodeWatch) isOpen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

func (n *nodeWatch) setOpen(open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = open
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
