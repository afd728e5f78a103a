package notice

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// ShutdownTime is how long an instance is estimated to run on once EC2 has begun to
// stop or terminate it. EC2 asks the operating system to shut down first and cuts the
// power minutes later (EC2 User Guide, "How instance termination works"). In that time
// the kubelet stops the pods: its shutdownGracePeriod is 150 s on the EKS AL2023 images
// from Kubernetes 1.34 on. The last 30 s are for critical pods
// (amazon-eks-ami, nodeadm/internal/kubelet/config.go). The Node API does not tell the
// value, so it is the same for every node.
const ShutdownTime = 2 * time.Minute

// ShutdownDeadline is the deadline that a change to a state sets which began at a
// moment: an estimate while the operating system shuts down, and hard once the power
// is off. It is nil for states in which the instance runs on.
func ShutdownDeadline(state string, at time.Time) *v1beta1.Deadline {
	switch state {
	case StateStopping, StateShuttingDown:
		return At(at.Add(ShutdownTime), v1beta1.DeadlineEstimated)
	case StateStopped, StateTerminated:
		return At(at, v1beta1.DeadlineHard)
	}
	return nil
}

// skew is how much later than a stop a kubelet must have reported to prove a start since.
// It allows for clock skew: it exceeds that of synchronised clocks, and is less than an
// instance takes to boot.
const skew = 10 * time.Second

// Outlived reports whether a notice says that an instance no longer runs, but the kubelet
// of its node has reported since: it was started again. It is false for drills, which stop
// nothing. The node may be nil.
func Outlived(n *v1beta1.Notice, node *corev1.Node) bool {
	return node != nil && !n.Drill && isGone(n) && isReadySince(node, n.Time.Add(skew))
}

// NeedsConfirmation reports whether a notice says that an instance no longer runs, which one
// message alone does not prove. A drill says so on purpose.
func NeedsConfirmation(n *v1beta1.Notice) bool { return !n.Withdrawn && !n.Drill && isGone(n) }

// Lived returns the time of the latest stop in notices that the instance has outlived, or
// zero.
func Lived(notices []v1beta1.Notice, node *corev1.Node) time.Time {
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
