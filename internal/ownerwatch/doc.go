// Package ownerwatch watches what controls the pods of doomed nodes, for their
// surge: the ReplicaSets, whose status tells how far successors have come, and
// the Deployments of those. Each is watched by its name, once for all nodes that
// ask about it, so that memory grows with what is going away and not with the
// cluster. Claims are read once: their access modes do not change.
package ownerwatch

// +kubebuilder:rbac:groups=apps,resources=replicasets;deployments,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get
