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
	next  time.Time // when the newest change that is under way arrives
	ended bool
	// follows is set once changes are told; missed are those that there were before.
	follows bool
	missed  []model.Change
}

// Pods begins to watch a node's pods, or returns what the watch shows.
func (l *life) Pods(_ context.Context, node string) ([]*corev1.Pod, bool, error) {
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
func (l *life) Await(ctx context.Context, node string) {
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
func (l *life) Forget(node string) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	if w := l.watches[node]; w != nil {
		w.ended = true
		delete(l.watches, node)
	}
}

// wantedWatch is a watch that a pass has begun; the list comes a little later.
type wantedWatch struct {
	life *life
	node string
	w    *podWatch
}

// answerWatches has the lists come that were asked for.
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
				a.life.leaves(p)
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

// podChanged has the watches of a node hear of a change, a little later.
func (l *life) podChanged(c model.Change) {
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
			l.leaves(pod)
		}
		l.podsChanged(pod.Spec.NodeName)
	})
}

// Current has changes told, where they were not for now.
func (l *life) Current(node string) bool {
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

// follow begins to tell of changes, of those first that have been since the list.
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
