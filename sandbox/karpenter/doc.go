// Package karpenter runs Karpenter, unmodified, as a process of its own against a
// sandbox's cluster and emulated AWS: capacity comes from it, as on EKS.
//
// It is the administrator in the cluster, and meets no instance metadata: where it
// is and who it is stands in its environment.
package karpenter
