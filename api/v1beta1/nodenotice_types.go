package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeNotice is what the agent of one node reads in the metadata of its instance. It is
// named after the node, and an agent can write only the one of its own node. The
// controller verifies it, and records its notices in the Interruption of the instance.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.instanceID`
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.spec.notices[0].kind`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeNotice struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the agent reads. Only the agent of the node writes it.
	// +required
	Spec NodeNoticeSpec `json:"spec"`
	// Status says whether Lifeboat's controller acts on it. Only the controller writes it.
	// +optional
	Status NodeNoticeStatus `json:"status,omitempty"`
}

// NodeNoticeList is a list of NodeNotice.
//
// +kubebuilder:object:root=true
type NodeNoticeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeNotice `json:"items"`
}

// NodeNoticeSpec is what the agent of a node reads in the metadata of its instance.
type NodeNoticeSpec struct {
	// InstanceID is the id of the instance that the node is, such as i-0a1b2c3d4e5f60718.
	// Lifeboat compares it with the end of the Node's spec.providerID.
	// +kubebuilder:validation:Pattern=`^i-[0-9a-f]{8,17}$`
	// +kubebuilder:validation:MaxLength=19
	// +required
	InstanceID string `json:"instanceID"`
	// NodeUID is the UID of the Node. Node names can be reused; the UID tells the nodes
	// apart.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	NodeUID string `json:"nodeUID"`
	// Notices lists what the metadata says, the latest first. A notice stays until its node
	// goes, or until newer ones need its place.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=id
	// +optional
	Notices []MetadataNotice `json:"notices,omitempty"`
}

// MetadataNotice is one notice in the metadata of an instance. It has no received time: the
// controller's own clock tells when a notice was received.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'ScheduledChange' || has(self.deadline) || (has(self.withdrawn) && self.withdrawn)",message="a ScheduledChange needs a deadline"
// +kubebuilder:validation:XValidation:rule="self.kind in ['SpotInterruption', 'ScheduledChange'] || !has(self.deadline)",message="only a SpotInterruption and a ScheduledChange have a deadline"
type MetadataNotice struct {
	// ID is derived from the content, so that a restarted agent derives the same one. It
	// begins with imds/, so that it differs from the ids of all other sources.
	// +kubebuilder:validation:Pattern=`^imds/[!-~]+$`
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`
	// Kind classifies the notice: one of the kinds that instance metadata contains.
	// +kubebuilder:validation:Enum=SpotInterruption;RebalanceRecommendation;ScheduledChange;AutoScalingTermination
	// +required
	Kind string `json:"kind"`
	// Subject identifies what the notice is about: the path of the metadata, or the id of
	// the scheduled event. Of several notices with the same kind and subject, only the
	// latest counts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Subject string `json:"subject"`
	// IssueTime is when EC2 issued the notice, if the metadata says so.
	// +optional
	IssueTime *metav1.Time `json:"issueTime,omitempty"`
	// Deadline is when the instance will stop. It is a hard deadline for a SpotInterruption,
	// and a soft one for a ScheduledChange. If the metadata of a SpotInterruption does not
	// say when, the controller derives the deadline from EC2's warning time.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// EndTime is the end of the scheduled time window, which starts at the deadline.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// InstanceAction is what EC2 will do to the instance, if the metadata says so.
	// +kubebuilder:validation:Enum=terminate;stop;hibernate;reboot;maintain
	// +optional
	InstanceAction string `json:"instanceAction,omitempty"`
	// EventTypeCode is EC2's own code, such as instance-stop, or the lifecycle state of the
	// Auto Scaling group, such as Terminated.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	EventTypeCode string `json:"eventTypeCode,omitempty"`
	// Withdrawn says that the metadata no longer says it: the change was cancelled or is
	// over.
	// +optional
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Description describes the notice in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Description string `json:"description,omitempty"`
}

// NodeNoticeStatus says whether Lifeboat's controller acts on a NodeNotice.
type NodeNoticeStatus struct {
	// ObservedGeneration is the generation of the NodeNotice that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions contains Accepted: whether the notices were recorded in the Interruption
	// of the instance and, if not, why and what to do.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
