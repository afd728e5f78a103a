package intake

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// skew is how much later than a stop a kubelet has to have spoken to have been started
// since. No kubelet speaks once its instance is stopped, so this is for clocks: it is
// more than clocks that are kept differ by, and less than an instance takes to boot.
const skew = 10 * time.Second

// hasLives reports whether the notice is of one life of an instance, and nothing to one
// that was started since. What a group does is, where an event tells of it: a
// termination that is under way now is seen by who asks the group.
func hasLives(n *notice.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange ||
		n.Kind == notice.KindAutoScalingTermination && n.Source == notice.SourceQueue
}

// isOfEarlierLife reports whether an instance was started since the notice was issued:
// its node registered later, as that of one does that leaves a warm pool, or its kubelet
// has spoken since it was stopped, whose node stays.
func isOfEarlierLife(n *notice.Notice, node *corev1.Node) bool {
	if node == nil || !hasLives(n) {
		return false
	}
	return n.Time.Time.Before(node.CreationTimestamp.Time) ||
		!n.Drill && saysGone(n) && isReadySince(node, n.Time.Add(skew))
}

// isReadySince reports whether a kubelet has said after a moment that its node is
// Ready. Of a healthy one that may have been five minutes ago, and one that is stopped
// stands as Ready until others miss it: neither says that it was started since.
func isReadySince(node *corev1.Node, at time.Time) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.After(at) || c.LastHeartbeatTime.After(at)
		}
	}
	return false
}

// saysGone reports whether the notice says that the instance no longer runs.
func saysGone(n *notice.Notice) bool {
	return notice.InstanceGone([]v1alpha1.Notice{n.Notice}, time.Time{})
}
