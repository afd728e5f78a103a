package podwatch

import (
	"context"
	"fmt"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeWatch is the watch of one node, and what it has told of.
type nodeWatch struct {
	changed func()
	stop    context.CancelFunc
	known   chan struct{} // closed once all pods are
	wanted  chan struct{} // closed once changes are

	mu        sync.Mutex
	pods      map[types.UID]packed
	follows   bool // whether changes are being told
	impatient bool // whether somebody waits for that
}

// current reports whether changes are being told; if not, somebody waits for it.
func (n *nodeWatch) current() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.follows && !n.impatient {
		n.impatient = true
		close(n.wanted)
	}
	return n.follows
}

// following notes whether changes are being told.
func (n *nodeWatch) following(are bool) {
	n.mu.Lock()
	n.follows = are
	waiting := are && n.impatient
	n.mu.Unlock()
	if waiting {
		n.changed()
	}
}

// packed is a pod as it is kept: a corev1.Pod takes two KiB, however little is
// in it, and its protobuf a quarter of one KiB.
type packed struct {
	bytes []byte
	// open is the pod itself for as long as the garbage collector has left it
	// alone, so that passes that follow on each other do not all unpack it.
	open weak.Pointer[corev1.Pod]
}

func pack(pod *corev1.Pod) (packed, error) {
	pod = slim(pod)
	bytes, err := pod.Marshal()
	return packed{bytes, weak.Make(pod)}, err
}

func (p *packed) unpack() (*corev1.Pod, error) {
	if pod := p.open.Value(); pod != nil {
		return pod, nil
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(p.bytes); err != nil {
		return nil, fmt.Errorf("unpacking a pod: %w", err)
	}
	p.open = weak.Make(pod)
	return pod, nil
}

// list returns the pods, and whether all of them are known.
func (n *nodeWatch) list() ([]*corev1.Pod, bool, error) {
	select {
	case <-n.known:
	default:
		return nil, false, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(n.pods))
	for uid, kept := range n.pods {
		pod, err := kept.unpack()
		if err != nil {
			return nil, false, err
		}
		n.pods[uid] = kept
		pods = append(pods, pod)
	}
	return pods, true, nil
}

// put stores a pod that is new or has changed.
func (n *nodeWatch) put(pod *corev1.Pod) error {
	kept, err := pack(pod)
	if err != nil {
		return fmt.Errorf("packing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	n.mu.Lock()
	n.pods[pod.UID] = kept
	n.mu.Unlock()
	n.changed()
	return nil
}

// remove forgets a pod. One of the same name that came since is another one.
func (n *nodeWatch) remove(pod *corev1.Pod) {
	n.mu.Lock()
	delete(n.pods, pod.UID)
	n.mu.Unlock()
	n.changed()
}

// replace stores all pods, for the first time or again.
func (n *nodeWatch) replace(pods map[types.UID]packed) {
	n.mu.Lock()
	n.pods = pods
	n.mu.Unlock()
	select {
	case <-n.known:
	default:
		close(n.known) // only the watch's goroutine comes here
	}
	n.changed()
}
