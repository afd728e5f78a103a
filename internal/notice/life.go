package notice

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// skew is how much later than a stop a kubelet has to have spoken to have been started
// since. No kubelet speaks once its instance is stopped, so this is for clocks: it is
// more than clocks that are kept differ by, and less than an instance takes to boot.
const skew = 10 * time.Second

// Outlived reports whether a notice says that an instance no longer runs, and the kubelet
// of its node has spoken since: it was started again. Nothing is said of drills, of which
// no kubelet knows. The node may be nil.
func Outlived(n *v1alpha1.Notice, node *corev1.Node) bool {
	return node != nil && !n.Drill && isGone(n) && isReadySince(node, n.Time.Add(skew))
}

// Lived returns when the last stop was issued that the instance has outlived, among
// notices about it; zero: there is none.
func Lived(notices []v1alpha1.Notice, node *corev1.Node) time.Time {
	var last time.Time
	for i := range notices {
		if n := &notices[i]; Outlived(n, node) && n.Time.After(last) {
			last = n.Time.Time
		}
	}
	return last
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
