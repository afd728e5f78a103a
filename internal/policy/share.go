package policy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Lead is how long before a soft deadline it counts as hard and planned actions begin by
// default.
const Lead = lead

// terminationShare is the default share of a pool that is terminated at the same time: a whole
// zone may appear to fail its checks.
const terminationShare = "20%"

// nodeGroupLabels are the labels that name the group of a node, in order of precedence:
// Lifeboat's own, EKS managed node groups, eksctl, and kOps instance groups.
func nodeGroupLabels() []string {
	return []string{
		v1beta1.LabelNodeGroup, "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kops.k8s.io/instancegroup",
	}
}

// NodeGroup returns the group of a node, or "".
func NodeGroup(node *corev1.Node) string {
	for _, label := range nodeGroupLabels() {
		if group := node.Labels[label]; group != "" {
			return group
		}
	}
	return ""
}

// Pool returns the pool of a node for limits: its NodePool, its node group, or "" if it has
// none.
func Pool(node *corev1.Node) string {
	if pool := node.Labels[labelNodePool]; pool != "" {
		return "NodePool " + pool
	}
	if group := NodeGroup(node); group != "" {
		return "node group " + group
	}
	return ""
}

// Selects reports whether the budget of a policy counts a node. An invalid policy has no budget.
func Selects(p *v1beta1.InterruptionPolicy, node *corev1.Node) bool {
	q := &matchContext{node: node}
	_, objects := q.policyMismatch(p)
	return !objects && len(Validate(p.Spec)) == 0
}

// Of returns the policy that selects a node: the valid one with the highest priority, then the first by
// name; nil: none does.
func Of(policies []v1beta1.InterruptionPolicy, node *corev1.Node) *v1beta1.InterruptionPolicy {
	for _, p := range ranked(policies) {
		if Selects(p, node) {
			return p
		}
	}
	return nil
}

// Share returns how many of the nodes a limit allows at the same time: a number, or a percentage
// rounded up; at least one.
func Share(limit intstr.IntOrString, of int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, of, true)
	if err != nil {
		return 1 // the policy is valid, so there is no error
	}
	return max(n, 1)
}
