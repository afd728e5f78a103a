package bench

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// podLog records the events of a pod watch.
type podLog struct {
	mu   sync.Mutex
	seen []observation
}

func (s *sideBySide) watchPods(tb testing.TB) *podLog {
	tb.Helper()
	l := &podLog{}
	pods := cache.NewListWatchFromClient(s.kube.CoreV1().RESTClient(), "pods", "default", fields.Everything())
	informer := reflector.NewInformer(pods, &corev1.Pod{}, 0, cache.Indexers{})
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { l.note(object, false) },
		UpdateFunc: func(_, object any) { l.note(object, false) },
		DeleteFunc: func(object any) { l.note(object, true) },
	})
	must(tb, err)
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		tb.Fatal("the pod watch did not sync")
	}
	return l
}

func (l *podLog) note(object any, gone bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	s := look(pod)
	if s.at = time.Now(); gone && s.end == lives {
		s.end = killed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, s)
}

func (l *podLog) all() []observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// look reads the relevant fields of a pod.
func look(pod *corev1.Pod) observation {
	s := observation{uid: string(pod.UID), app: pod.Labels["app"], node: pod.Spec.NodeName}
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		s.grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		s.given = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		s.asked = pod.DeletionTimestamp.Add(-s.given)
	}
	// The kubelet of an instance that shuts down stops pods that are not deleted.
	if given, down := kwok.ShutsDown(pod); down && s.asked.IsZero() {
		at, _ := time.Parse(time.RFC3339, pod.Annotations[kwok.ShutdownAnnotation]) // the sandbox writes it
		s.asked, s.given = at, given
	}
	for _, c := range pod.Status.Conditions {
		s.ready = s.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		s.end = exited
	case corev1.PodFailed:
		if s.end = killed; endedWell(pod) { // as a pod ends whose node shuts down
			s.end = exited
		}
	}
	return s
}

// endedWell reports whether all containers of a pod ended with exit code 0.
func endedWell(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if t := pod.Status.ContainerStatuses[i].State.Terminated; t == nil || t.ExitCode != 0 {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
