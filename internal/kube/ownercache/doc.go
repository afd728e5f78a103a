// Package ownercache watches the owners of the pods on interrupted nodes, for
// surges: ReplicaSets, whose status shows the progress of successors, and their
// Deployments. Each object is watched by name, once for all nodes, so memory
// grows with the interrupted nodes and not with the cluster.
// PersistentVolumeClaims are read once, because their access modes do not
// change.
package ownercache

// +kubebuilder:rbac:groups=apps,resources=replicasets;deployments,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get
