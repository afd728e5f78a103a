package intake

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

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
	return n.Time.Time.Before(node.CreationTimestamp.Time) || notice.Outlived(&n.Notice, node)
}

// saysGone reports whether the notice says that the instance no longer runs.
func saysGone(n *notice.Notice) bool {
	return notice.InstanceGone([]v1alpha1.Notice{n.Notice}, time.Time{})
}
