package replacement

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// MostOthers is how many other nodes are checked for free capacity: each costs
// a request for its pods.
const MostOthers = 8

// Other is another node with all its pods.
type Other struct {
	Node *corev1.Node
	Pods []*corev1.Pod
}

// MayTake reports whether a node may take pods, as far as the Node object
// tells: it is Ready, schedulable, not interrupted, and not a replacement for
// another node. Free capacity is not checked.
func MayTake(node *corev1.Node) bool {
	if node == nil || node.Spec.Unschedulable || node.DeletionTimestamp != nil || node.Labels[v1beta1.LabelReplacesInstance] != "" {
		return false
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1beta1.TaintInterrupted || t.Key == taintDisrupted || strings.HasPrefix(t.Key, "node.kubernetes.io/")
	}) {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// IsDisrupted reports whether Karpenter is removing a node or about to.
func IsDisrupted(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintDisrupted })
}

// room is the free capacity of a node.
type room struct {
	node *corev1.Node
	free corev1.ResourceList
}

// roomFor reports whether all pods fit on other nodes: first fit, largest pod
// first. It returns the names of the nodes used. If it cannot be certain, the
// answer is no.
func roomFor(pods []*corev1.Pod, others []Other) (used []string, fits bool) {
	if slices.ContainsFunc(pods, isParticular) {
		return nil, false
	}
	var rooms []*room
	for _, o := range others {
		if MayTake(o.Node) && !slices.ContainsFunc(o.Pods, keepsOthersOff) {
			rooms = append(rooms, roomOn(o))
		}
	}
	for _, pod := range largestFirst(pods) {
		wants := total([]*corev1.Pod{pod})
		i := slices.IndexFunc(rooms, func(r *room) bool { return suits(pod, r.node) && within(wants, r.free) })
		if i < 0 {
			return nil, false
		}
		subtract(rooms[i].free, wants)
		if name := rooms[i].node.Name; !slices.Contains(used, name) {
			used = append(used, name)
		}
	}
	return used, true
}

func roomOn(o Other) *room {
	free := o.Node.Status.Allocatable.DeepCopy()
	if free == nil {
		free = corev1.ResourceList{}
	}
	var running []*corev1.Pod
	for _, pod := range o.Pods {
		if pod != nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			running = append(running, pod)
		}
	}
	subtract(free, total(running))
	return &room{node: o.Node, free: free}
}

func largestFirst(pods []*corev1.Pod) []*corev1.Pod {
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int {
		x, y := requestsOf(a), requestsOf(b)
		if c := y.Cpu().Cmp(*x.Cpu()); c != 0 {
			return c
		}
		return y.Memory().Cmp(*x.Memory())
	})
	return sorted
}

// isParticular reports whether the placement of a pod depends on more than the
// Node object: other pods, volumes, ports or devices.
func isParticular(pod *corev1.Pod) bool {
	s := &pod.Spec
	if a := s.Affinity; a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0) {
		return true
	}
	return claimsVolume(pod) || len(s.ResourceClaims) > 0 || len(s.SchedulingGates) > 0 || s.SchedulerName != "" && s.SchedulerName != corev1.DefaultSchedulerName ||
		slices.ContainsFunc(s.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable != corev1.ScheduleAnyway
		}) || slices.ContainsFunc(s.Containers, hasHostPort) || slices.ContainsFunc(s.InitContainers, hasHostPort)
}

func hasHostPort(c corev1.Container) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
}

// keepsOthersOff reports whether a pod has required anti-affinity.
func keepsOthersOff(pod *corev1.Pod) bool {
	return pod != nil && pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAntiAffinity != nil &&
		len(pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// suits reports whether the node's labels and taints allow a pod.
func suits(pod *corev1.Pod, node *corev1.Node) bool {
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	if len(requiredTerms(pod)) > 0 && metTerm(pod, node) == nil {
		return false
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(t, pod.Spec.Tolerations)
	})
}

// tolerated reports whether a toleration matches the taint (Kubernetes
// documentation, "Taints and Tolerations"). Unknown operators tolerate nothing.
func tolerated(t corev1.Taint, by []corev1.Toleration) bool {
	return slices.ContainsFunc(by, func(o corev1.Toleration) bool {
		if o.Effect != "" && o.Effect != t.Effect || o.Key != "" && o.Key != t.Key {
			return false
		}
		if o.Operator == corev1.TolerationOpExists {
			return true
		}
		return (o.Operator == "" || o.Operator == corev1.TolerationOpEqual) && o.Key != "" && o.Value == t.Value
	})
}

// Candidates returns the nodes worth a check for free capacity, the youngest
// first, because they are probably the emptiest. It returns none if the pods
// need more than a node can tell.
func Candidates(nodes []*corev1.Node, pods []*corev1.Pod) []*corev1.Node {
	if len(pods) == 0 || slices.ContainsFunc(pods, isParticular) {
		return nil
	}
	found := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool {
		return !MayTake(n) || !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return suits(p, n) })
	})
	slices.SortFunc(found, func(a, b *corev1.Node) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return found[:min(len(found), MostOthers)]
}
