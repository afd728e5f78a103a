package replacement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// Movable returns the pods of a node that need a place elsewhere: all but those
// that a drain leaves alone and those that are terminating, which already have
// successors.
func Movable(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return p == nil || p.DeletionTimestamp != nil || drain.Stays(p)
	})
}

// everywhere returns the DaemonSet pods, which the new node will run too.
func everywhere(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p == nil || !drain.OfDaemonSet(p) })
}

// total is the sum of the pods' requests and their number.
func total(pods []*corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, pod := range pods {
		add(sum, requestsOf(pod))
	}
	sum[corev1.ResourcePods] = *resource.NewQuantity(int64(len(pods)), resource.DecimalSI)
	return sum
}

// requestsOf is a pod's size for the scheduler: the sum of its containers, or
// an init container that requests more, plus overhead (Kubernetes
// documentation, "Init Containers", "Sidecar Containers", "Pod Overhead").
// Pod-level requests take precedence.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		add(sum, pod.Spec.Containers[i].Resources.Requests)
	}
	first, sidecars := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sidecars, c.Resources.Requests)
			add(sum, c.Resources.Requests)
			atLeast(first, sidecars)
			continue
		}
		needs := maps.Clone(sidecars)
		add(needs, c.Resources.Requests)
		atLeast(first, needs)
	}
	atLeast(sum, first)
	if pod.Spec.Resources != nil {
		maps.Copy(sum, pod.Spec.Resources.Requests)
	}
	add(sum, pod.Spec.Overhead)
	return sum
}

// add adds more to a list in place.
func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

// subtract subtracts less from a list in place.
func subtract(from, less corev1.ResourceList) {
	for name, q := range less {
		left := from[name].DeepCopy()
		left.Sub(q)
		from[name] = left
	}
}

// atLeast raises a list in place to the values of another.
func atLeast(to, other corev1.ResourceList) {
	for name, q := range other {
		if have := to[name]; have.Cmp(q) < 0 {
			to[name] = q.DeepCopy()
		}
	}
}

// within reports whether a list fits into another, in which absent entries are
// zero.
func within(what, room corev1.ResourceList) bool {
	for name, q := range what {
		if have := room[name]; q.Sign() > 0 && have.Cmp(q) < 0 {
			return false
		}
	}
	return true
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
