package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeGroupStatus is the observed state of the Auto Scaling group.
type NodeGroupStatus struct {
	// ObservedGeneration is the generation of the spec that this status is
	// based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Group is the name of the Auto Scaling group.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Group string `json:"group,omitempty"`
	// ARN is the ARN of the Auto Scaling group.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ARN string `json:"arn,omitempty"`
	// Operator is the AWS service that manages the group, such as EKS. It is
	// empty if the account itself manages it. Lifeboat cannot change a group
	// that has an operator.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Operator string `json:"operator,omitempty"`
	// Min is the group's minimum size.
	// +kubebuilder:default=0
	// +optional
	Min int32 `json:"min"`
	// Max is the group's maximum size.
	// +kubebuilder:default=0
	// +optional
	Max int32 `json:"max"`
	// Desired is the group's desired capacity.
	// +kubebuilder:default=0
	// +optional
	Desired int32 `json:"desired"`
	// Instances counts the group's instances by lifecycle state.
	// +optional
	Instances InstanceCounts `json:"instances,omitempty"`
	// PendingActions counts the instances that a lifecycle hook holds.
	// +kubebuilder:default=0
	// +optional
	PendingActions int32 `json:"pendingActions"`
	// Actions lists the instances that lifecycle hooks hold, oldest first, at
	// most 50.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Actions []LifecycleAction `json:"actions,omitempty"`
	// Boots summarises how long instances took to come into service.
	// +optional
	Boots *BootTimes `json:"boots,omitempty"`
	// ConsecutiveFailures counts the failed launches since the latest
	// successful one.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`
	// Failures lists the latest failed launches and failed hook answers, newest
	// first, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Failures []GroupFailure `json:"failures,omitempty"`
	// Suspended lists the scaling processes that are suspended on the group.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Suspended []string `json:"suspended,omitempty"`
	// Unhooked lists instances that were launched before the launch hook
	// existed. They are on their way into service, or in the warm pool, and no
	// hook waited for their set-up. At most 50.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Unhooked []string `json:"unhooked,omitempty"`
	// Findings lists the problems of the group, most severe first, at most 20.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Findings []GroupFinding `json:"findings,omitempty"`
	// Deletion says what happens at AWS when this object is deleted.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Deletion string `json:"deletion,omitempty"`
	// Conditions are Found, HooksReady, Synced and, computed from them, Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InstanceCounts counts instances by their state in the group's lifecycle.
type InstanceCounts struct {
	// InService counts instances in service.
	// +kubebuilder:default=0
	// +optional
	InService int32 `json:"inService"`
	// Joining counts instances on their way into service.
	// +kubebuilder:default=0
	// +optional
	Joining int32 `json:"joining"`
	// Warming counts instances on their way into the warm pool.
	// +optional
	Warming int32 `json:"warming,omitempty"`
	// Warm counts instances in the warm pool.
	// +kubebuilder:default=0
	// +optional
	Warm int32 `json:"warm"`
	// Leaving counts instances on their way out of service or out of the warm
	// pool.
	// +kubebuilder:default=0
	// +optional
	Leaving int32 `json:"leaving"`
	// Retained counts instances whose terminate hook was abandoned. They run
	// until a user terminates them.
	// +optional
	Retained int32 `json:"retained,omitempty"`
	// Other counts instances in standby, being detached, or in an unknown
	// state.
	// +optional
	Other int32 `json:"other,omitempty"`
}

// LifecycleAction is an instance that a lifecycle hook holds.
type LifecycleAction struct {
	// InstanceID is the id of the instance.
	// +kubebuilder:validation:MaxLength=63
	// +required
	InstanceID string `json:"instanceID"`
	// State is the lifecycle state, as Auto Scaling reports it.
	// +kubebuilder:validation:MaxLength=63
	// +required
	State string `json:"state"`
	// NodeName is the name of the instance's node, if it has one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Hook is the hook that Lifeboat must answer. It is empty if no hook of
	// Lifeboat holds the instance.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Hook string `json:"hook,omitempty"`
	// Since is when Lifeboat first saw that the instance is held.
	// +required
	Since metav1.Time `json:"since"`
	// Expires is when the hook times out, as far as Lifeboat knows.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// LastHeartbeat is when the hook's timeout was last extended.
	// +optional
	LastHeartbeat *metav1.Time `json:"lastHeartbeat,omitempty"`
	// Message says what the instance waits for.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// BootTimes summarises how long instances took from launch, or from leaving the
// warm pool, until they were in service.
type BootTimes struct {
	// Count is the number of instances measured.
	// +required
	Count int32 `json:"count"`
	// LastSeconds is the time of the latest instance, in seconds.
	// +required
	LastSeconds int32 `json:"lastSeconds"`
	// LongestSeconds is the longest time, in seconds.
	// +required
	LongestSeconds int32 `json:"longestSeconds"`
}

// GroupFailure is a failed launch or a failed hook answer.
type GroupFailure struct {
	// Time is when it failed.
	// +required
	Time metav1.Time `json:"time"`
	// InstanceID is the id of the instance, if known.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// Message says what failed, and why.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Message string `json:"message"`
}

// GroupFinding is one problem of a group, and how to fix it.
type GroupFinding struct {
	// Severity is broken, unknown, warning or info.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Severity string `json:"severity"`
	// ID names the kind of finding, such as launch-hook-missing.
	// +kubebuilder:validation:MaxLength=63
	// +required
	ID string `json:"id"`
	// Message says what is wrong, and what the consequence is.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`
	// Fix says how to fix it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Fix string `json:"fix,omitempty"`
}
