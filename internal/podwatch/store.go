package podwatch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeWatch is the watch of one node, and the store that its reflector fills.
type nodeWatch struct {
	changed func()
	stop    context.CancelFunc
	known   chan struct{} // closed once all pods are

	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
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
	pods := make([]*corev1.Pod, 0, len(n.pods))
	for _, pod := range n.pods {
		pods = append(pods, pod)
	}
	return pods, true
}

// Add implements cache.ReflectorStore.
func (n *nodeWatch) Add(object any) error { return n.put(object) }

// Update implements cache.ReflectorStore.
func (n *nodeWatch) Update(object any) error { return n.put(object) }

func (n *nodeWatch) put(object any) error {
	if pod, ok := object.(*corev1.Pod); ok {
		n.mu.Lock()
		n.pods[pod.UID] = slim(pod)
		n.mu.Unlock()
		n.changed()
	}
	return nil
}

// Delete implements cache.ReflectorStore. A pod of the same name that came since
// is another one.
func (n *nodeWatch) Delete(object any) error {
	if pod, ok := object.(*corev1.Pod); ok {
		n.mu.Lock()
		delete(n.pods, pod.UID)
		n.mu.Unlock()
		n.changed()
	}
	return nil
}

// Replace implements cache.ReflectorStore: the list has come, for the first time
// or again.
func (n *nodeWatch) Replace(objects []any, _ string) error {
	pods := make(map[types.UID]*corev1.Pod, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			pods[pod.UID] = slim(pod)
		}
	}
	n.mu.Lock()
	n.pods = pods
	n.mu.Unlock()
	select {
	case <-n.known:
	default:
		close(n.known) // only the reflector's goroutine comes here
	}
	n.changed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (n *nodeWatch) Resync() error { return nil }
