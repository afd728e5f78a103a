package policy

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// IsControlPlane reports whether a node runs the control plane. Kubelets cannot set these labels
// themselves (Kubernetes documentation, "Using Node Authorization", NodeRestriction).
func IsControlPlane(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	_, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]
	_, master := node.Labels["node-role.kubernetes.io/master"]
	return controlPlane || master
}

// spareControlPlane drains a node of the control plane in place of a termination, and detaches
// no instance of it from a group: the instance can hold a member of etcd.
func (q *matchContext) spareControlPlane(c match) match {
	if !IsControlPlane(q.node) {
		return c
	}
	c.replacement = v1beta1.ReplacementNone
	if c.action == v1beta1.ActionTerminate {
		c.action = v1beta1.ActionDrain
		c.because += "; Lifeboat never terminates an instance of the control plane, so replace it with the tool that created it"
	}
	return c
}
