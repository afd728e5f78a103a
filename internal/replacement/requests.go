package replacement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// Movable returns the pods of a node that have to find a place elsewhere: all but
// those that a drain leaves alone, and those that are leaving already, whose
// successors have begun.
func Movable(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return p == nil || p.DeletionTimestamp != nil || drain.Stays(p)
	})
}

// everywhere returns those that a DaemonSet keeps on every node, the new one
// too.
func everywhere(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p == nil || !drain.OfDaemonSet(p) })
}

// total is what pods request together, and how many they are.
func total(pods []*corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, pod := range pods {
		add(sum, requestsOf(pod))
	}
	sum[corev1.ResourcePods] = *resource.NewQuantity(int64(len(pods)), resource.DecimalSI)
	return sum
}

// requestsOf is what the scheduler counts a pod as: its containers together, or
// an init container that wants more, and what its sandbox takes (Kubernetes
// documentation, "Init Containers", "Sidecar Containers", "Pod Overhead"). What is
// asked for the pod as a whole goes before.
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

// add adds to a list in place.
func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

// subtract takes from a list in place.
func subtract(from, less corev1.ResourceList) {
	for name, q := range less {
		left := from[name].DeepCopy()
		left.Sub(q)
		from[name] = left
	}
}

// atLeast raises a list in place to what another has.
func atLeast(to, other corev1.ResourceList) {
	for name, q := range other {
		if have := to[name]; have.Cmp(q) < 0 {
			to[name] = q.DeepCopy()
		}
	}
}

// within reports whether a list is within another, in which what is absent is
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
