package notice

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// skew is how much later than a stop a kubelet must have reported to prove a start since.
// It allows for clock skew: it exceeds that of synchronised clocks, and is less than an
// instance takes to boot.
const skew = 10 * time.Second

// Outlived reports whether a notice says that an instance no longer runs, but the kubelet
// of its node has reported since: it was started again. It is false for drills, which stop
// nothing. The node may be nil.
func Outlived(n *v1alpha1.Notice, node *corev1.Node) bool {
	return node != nil && !n.Drill && isGone(n) && isReadySince(node, n.Time.Add(skew))
}

// Lived returns the time of the latest stop in notices that the instance has outlived, or
// zero.
func Lived(notices []v1alpha1.Notice, node *corev1.Node) time.Time {
	var last time.Time
	for i := range notices {
		if n := &notices[i]; Outlived(n, node) && n.Time.After(last) {
			last = n.Time.Time
		}
	}
	return last
}

// isReadySince reports whether the kubelet has reported Ready after a time. The Ready
// condition alone proves nothing: a healthy kubelet refreshes it every five minutes only,
// and that of a stopped one stays True until the node controller marks it Unknown.
func isReadySince(node *corev1.Node, at time.Time) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.After(at) || c.LastHeartbeatTime.After(at)
		}
	}
	return false
}
