// Package v1alpha1 holds the API that users of Lifeboat write and read:
// Interruption and InterruptionPolicy, with the names of their phases,
// conditions, reasons, labels, taints and annotations. It has no logic and
// imports only Kubernetes API machinery, so that others can vendor it alone.
//
// +kubebuilder:object:generate=true
// +groupName=lifeboat.dev
package v1alpha1
