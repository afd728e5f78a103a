package corroborate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// learns is how long EC2 may not know a new instance. AWS recommends to repeat a call for about
// five minutes (Amazon EC2 Developer Guide, "Eventual consistency in the Amazon EC2 API").
const learns = 5 * time.Minute

// isUnlearned reports whether EC2 may not know the instance of a Node yet.
func isUnlearned(i *cloud.Instance, node *corev1.Node, now time.Time) bool {
	return i == nil && node != nil && now.Sub(node.CreationTimestamp.Time) < learns
}

// Gone decides whether EC2 confirms that the instance of a Node no longer runs. EC2 forgets a
// terminated instance after about an hour, so one that it does not know is gone, unless its Node is
// new. A Node that is Ready may agree: Kubernetes notices a silent kubelet only after a while. Its
// name must not differ from that of a stopped instance. EC2 gives none of a terminated one.
func Gone(i *cloud.Instance, node *corev1.Node, now time.Time) Verdict {
	switch {
	case isUnlearned(i, node, now):
		return unknown("EC2 does not know the instance of the new node %s", node.Name)
	case i == nil:
		return Verdict{Answer: Agree}
	case !PoweredOff(i).Agrees():
		return differ("a notice says that instance %s no longer runs, but EC2 says that it is %s", i.ID, i.State)
	}
	if node != nil {
		if v := Node(node, i); v.Answer == Differ {
			return v
		}
	}
	return Verdict{Answer: Agree}
}

// Terminating decides whether EC2 confirms that an instance terminates or is terminated.
func Terminating(i *cloud.Instance, node *corev1.Node, now time.Time) Verdict {
	switch {
	case isUnlearned(i, node, now):
		return unknown("EC2 does not know the instance of the new node %s", node.Name)
	case i == nil, i.State == "shutting-down", i.State == "terminated":
		return Verdict{Answer: Agree}
	}
	return differ("EC2 says that instance %s is %s", i.ID, i.State)
}

// PoweredOff decides whether EC2 itself says that an instance has no power, so that its volumes
// may be detached by force. Unlike for Gone, an instance that EC2 does not know is no proof: a
// wrong region or account looks the same.
func PoweredOff(i *cloud.Instance) Verdict {
	switch {
	case i == nil:
		return unknown("EC2 does not know the instance")
	case i.State == "stopped", i.State == "terminated":
		return Verdict{Answer: Agree}
	}
	return differ("EC2 says that instance %s is %s", i.ID, i.State)
}
