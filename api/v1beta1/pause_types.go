package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pause stops what Lifeboat does, for the whole cluster or for the nodes of one NodePool,
// until a time. The Pause of the cluster has the name cluster, and that of a NodePool the
// name nodepool-NAME. A Pause that has ended does nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`
// +kubebuilder:printcolumn:name="Stops",type=string,JSONPath=`.spec.stops`
// +kubebuilder:printcolumn:name="Note",type=string,JSONPath=`.spec.note`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == (has(self.spec.nodePool) ? 'nodepool-' + self.spec.nodePool : 'cluster')",message="the name must be cluster, or nodepool- and the name of spec.nodePool"
type Pause struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is paused, for how long, and who wants it.
	// +required
	Spec PauseSpec `json:"spec"`
}

// PauseList is a list of Pause.
//
// +kubebuilder:object:root=true
type PauseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pause `json:"items"`
}

// PauseSpec says what is paused, for how long, and who wants it.
//
// +kubebuilder:validation:XValidation:rule="timestamp(self.until) - timestamp(self.startTime) <= duration('24h')",message="a pause lasts 24 hours at most; pause again to extend it"
// +kubebuilder:validation:XValidation:rule="has(self.nodePool) == has(oldSelf.nodePool) && (!has(self.nodePool) || self.nodePool == oldSelf.nodePool)",message="spec.nodePool cannot change"
type PauseSpec struct {
	// By is the user's name, as the API server authenticated it. The chart's admission
	// policy ensures that users can only write their own name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	By string `json:"by"`
	// StartTime is when the pause begins.
	// +required
	StartTime metav1.Time `json:"startTime"`
	// Until is when the pause ends.
	// +required
	Until metav1.Time `json:"until"`
	// Stops is Deferrable to stop what can wait: all actions except those before a hard or
	// estimated deadline that people cannot move. Everything also stops those: pods are then
	// lost when AWS takes their instance.
	// +kubebuilder:default=Deferrable
	// +optional
	Stops PauseScope `json:"stops,omitempty"`
	// NodePool limits the pause to the nodes of this Karpenter NodePool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	NodePool string `json:"nodePool,omitempty"`
	// Note is the reason that the user gave.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Note string `json:"note,omitempty"`
}

// PauseScope says which actions a pause stops.
//
// +kubebuilder:validation:Enum=Deferrable;Everything
type PauseScope string

// What a pause stops.
const (
	PauseDeferrable PauseScope = "Deferrable"
	PauseEverything PauseScope = "Everything"
)
