// Package migrate converts Karpenter's manifests from v1beta1 to v1: NodePools,
// EC2NodeClasses, and the annotations, tolerations and node selectors of workloads.
// It reports each change, and everything that it cannot change or that is suspicious,
// as a finding. It does not change what it does not understand. It is idempotent: a
// second conversion changes nothing.
//
// The rules are those of Karpenter's own conversion webhooks, which v1.0 had and v1.1
// removed (Karpenter documentation, v1 Migration, and pkg/apis/v1 of v1.0). The
// package is pure: texts in, text and findings out.
package migrate
