package drain

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// rank is a pod's place in the drain order: pods of a lower rank leave first.
type rank int

const (
	rankFirst rank = iota
	rankNormal
	rankLast
	rankHelper
	rankCritical
	ranks
)

func rankOf(c *podState) rank {
	if isCritical(c.pod) {
		return rankCritical
	}
	if c.treatment != nil {
		switch c.treatment.Order {
		case v1beta1.OrderFirst:
			return rankFirst
		case v1beta1.OrderLast:
			return rankLast
		case v1beta1.OrderNormal:
			return rankNormal
		}
	}
	if helperOf(c.pod) != "" {
		return rankHelper
	}
	return rankNormal
}

// outOfOrder makes a pod wait for pods of lower ranks that are about to leave, because they may
// need it while they stop. Pods that something holds do not count, so nothing waits for them.
func outOfOrder(s *planContext, c *podState) (Verdict, bool) {
	going := 0
	for _, n := range s.going[:c.rank] {
		going += n
	}
	if going == 0 || !s.awaitsTurn(c) {
		return Verdict{}, false
	}
	v, ok := say(StepWaits, fmt.Sprintf("waits: %s (still leaving: %d)%s", c.afterWhom(), going, s.byItsTurn(c)))
	v.AwaitsOthers = true
	return v, ok
}

func (c *podState) afterWhom() string {
	switch c.rank {
	case rankCritical:
		return "it is critical, so it leaves after the ordinary pods"
	case rankHelper:
		return fmt.Sprintf("other pods of the node may use its volumes (%s), so it leaves after them", helperOf(c.pod))
	case rankLast:
		return fmt.Sprintf("its order is Last (%s), so it leaves after the others", c.treatment.title())
	}
	return "those whose order is First leave before it"
}

// isCritical reports whether the pod's priority is at least that of the two system classes
// (Kubernetes documentation, "Guaranteed Scheduling For Critical Add-On Pods").
func isCritical(pod *corev1.Pod) bool {
	const systemCritical = 2_000_000_000
	return pod.Spec.PriorityClassName == "system-cluster-critical" ||
		pod.Spec.PriorityClassName == "system-node-critical" ||
		(pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical)
}

// inTurn orders pods by rank, then by grace (the longest has the earliest last call), then by
// name.
func inTurn(a, b *podState) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(b.grace, a.grace),
		cmp.Compare(a.pod.Namespace, b.pod.Namespace),
		cmp.Compare(a.pod.Name, b.pod.Name),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

// atLastCall is 1 for pods whose last call has come, 0 for others.
func (s *planContext) atLastCall(c *podState) int {
	if s.lastCallReached(c) {
		return 1
	}
	return 0
}
