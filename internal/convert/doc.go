// Package convert turns Karpenter's manifests of v1beta1 into those of v1: NodePools and
// EC2NodeClasses, and what workloads say to Karpenter in annotations, tolerations and
// node selectors. Whatever it changes, cannot change or finds odd it says as a finding;
// what it does not understand it leaves as it was. Converting its own output changes
// nothing.
//
// The rules are those of Karpenter's own conversion webhooks, which v1.0 had and v1.1
// dropped (Karpenter documentation, v1 Migration, and pkg/apis/v1 of v1.0). It is pure:
// texts in, text and findings out.
package convert
