// Package v1beta1 holds Lifeboat's API: Interruption, InterruptionPolicy and
// NodeGroup, and the names of their phases, conditions, reasons, labels, taints
// and annotations. It has no logic and imports only Kubernetes API machinery,
// so that other projects can vendor it.
//
// +kubebuilder:object:generate=true
// +groupName=lifeboat.dev
package v1beta1
