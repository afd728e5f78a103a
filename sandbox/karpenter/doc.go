// Package karpenter runs unmodified Karpenter as a process, against a sandbox's cluster and emulated
// AWS.
//
// It has the administrator's permissions in the cluster. It reads no instance metadata: environment
// variables have its region and credentials.
package karpenter
