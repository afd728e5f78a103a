package interruption

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// podWatch is the watch of the pods of one node.
type podWatch struct {
	known chan struct{}
	pods  map[types.UID]*corev1.Pod
	next  time.Time // when the newest pending change arrives
	ended bool
	// follows is set once changes are delivered; missed are the changes before that.
	follows bool
	missed  []model.Change
}

// Pods starts to watch a node's pods, or returns what the watch shows.
func (l *controllerProcess) Pods(_ context.Context, node string) ([]*corev1.Pod, bool, error) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	w := l.watches[node]
	if w == nil {
		w = &podWatch{known: make(chan struct{})}
		l.watches[node] = w
		l.run.wanted = append(l.run.wanted, wantedWatch{l, node, w})
	}
	if w.pods == nil {
		return nil, false, nil
	}
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		pods = append(pods, pod)
	}
	return pods, true, nil
}

// Await waits for the list.
func (l *controllerProcess) Await(ctx context.Context, node string) {
	l.run.mu.Lock()
	w := l.watches[node]
	l.run.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case <-w.known:
	case <-ctx.Done():
	}
}

// Forget ends the watch.
func (l *controllerProcess) Forget(node string) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	if w := l.watches[node]; w != nil {
		w.ended = true
		delete(l.watches, node)
	}
}

// wantedWatch is a watch that a pass has started; the list arrives a little later.
type wantedWatch struct {
	life *controllerProcess
	node string
	w    *podWatch
}

// answerWatches delivers the requested lists.
func (r *modelRun) answerWatches() {
	r.mu.Lock()
	wanted, news := r.wanted, r.news
	r.wanted, r.news = nil, nil
	r.mu.Unlock()
	for _, a := range sortedWatches(news) {
		r.c.After(r.latency(), "news of "+a.node, a.follow)
	}
	for _, a := range sortedWatches(wanted) {
		r.c.After(r.latency(), "list of "+a.node, func() {
			if a.life.Dead() || a.w.ended {
				return
			}
			pods := map[types.UID]*corev1.Pod{}
			for _, p := range r.Cluster.Pods(model.On(a.node)) {
				pods[p.UID] = p
				a.life.noteLeaving(p)
			}
			r.mu.Lock()
			a.w.pods = pods
			r.mu.Unlock()
			close(a.w.known)
			a.life.podsChanged(a.node)
			if held := r.chaos.held; held > 0 {
				r.c.After(held, "end of the hold of "+a.node, a.follow)
			} else {
				a.follow()
			}
		})
	}
}

// podChanged delivers a change to the watches of a node, a little later.
func (l *controllerProcess) podChanged(c model.Change) {
	pod, _ := c.New.(*corev1.Pod)
	gone := pod == nil
	if gone {
		pod, _ = c.Old.(*corev1.Pod)
	}
	w := l.watches[pod.Spec.NodeName]
	if l.Dead() || w == nil || w.pods == nil {
		return
	}
	if !w.follows {
		w.missed = append(w.missed, c)
		return
	}
	at := l.run.c.Now().Add(l.run.lag("Pod"))
	if at.Before(w.next) {
		at = w.next
	}
	w.next = at
	l.run.c.At(at, "pods of "+pod.Spec.NodeName, func() {
		if l.Dead() || w.ended {
			return
		}
		if gone {
			delete(w.pods, pod.UID)
		} else {
			w.pods[pod.UID] = pod
			l.noteLeaving(pod)
		}
		l.podsChanged(pod.Spec.NodeName)
	})
}

// Watched returns how many nodes are watched.
func (l *controllerProcess) Watched() int {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	return len(l.watches)
}

// Current starts the delivery of changes, if it was withheld.
func (l *controllerProcess) Current(node string) bool {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	w := l.watches[node]
	if w == nil {
		return false
	}
	if !w.follows {
		l.run.news = append(l.run.news, wantedWatch{l, node, w})
	}
	return w.follows
}

// follow starts to deliver changes, first those since the list.
func (a wantedWatch) follow() {
	r := a.life.run
	r.mu.Lock()
	begins := !a.w.follows
	a.w.follows = true
	r.mu.Unlock()
	if !begins || a.life.Dead() || a.w.ended {
		return
	}
	for _, c := range a.w.missed {
		a.life.podChanged(c)
	}
	a.w.missed = nil
	a.life.podsChanged(a.node)
}
