package nodeindex

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// taintUninitialized is on a node until the cloud controller manager has set its provider id
// (k8s.io/cloud-provider/api, TaintExternalCloudProvider).
const taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// ProviderIDFix says how a node gets its provider id. The API server accepts one for a node that
// has none, and no change after that (kubernetes pkg/apis/core/validation, ValidateNodeUpdate).
const ProviderIDFix = "start its kubelet with --provider-id=aws:///ZONE/INSTANCE, or run the AWS cloud controller manager " +
	`and --cloud-provider=external; for a node that is there: kubectl patch node NODE -p '{"spec":{"providerID":"aws:///ZONE/INSTANCE"}}'`

// IsUnreachable reports whether no notice can reach a node: it is an EC2 instance, and it has no
// provider id, by which notices about instances find their node. Without evidence of EC2 the answer
// is false: most clusters of other machines have no provider ids.
func IsUnreachable(node *corev1.Node) bool {
	uninitialized := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUninitialized })
	return node.Spec.ProviderID == "" && !uninitialized && isOnEC2(node)
}

// Unreachable returns the names of the nodes that no notice can reach, sorted.
func Unreachable(nodes []corev1.Node) (names []string) {
	for i := range nodes {
		if IsUnreachable(&nodes[i]) {
			names = append(names, nodes[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// isOnEC2 reports whether a node without a provider id is an EC2 instance: its system UUID begins
// with ec2 (EC2 User Guide, "Detect whether a host is an EC2 instance"), it has the default host name
// of an instance ("EC2 instance hostnames and domains"), or a label of EKS or of Karpenter on AWS.
func isOnEC2(node *corev1.Node) bool {
	host := strings.HasSuffix(node.Name, ".compute.internal") || strings.HasSuffix(node.Name, ".ec2.internal")
	if host || strings.HasPrefix(strings.ToLower(node.Status.NodeInfo.SystemUUID), "ec2") {
		return true
	}
	for label := range node.Labels {
		if label == "eks.amazonaws.com/nodegroup" || strings.HasPrefix(label, "karpenter.k8s.aws/") {
			return true
		}
	}
	return false
}
