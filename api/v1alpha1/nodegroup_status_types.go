package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeGroupStatus is how the group stands at AWS.
type NodeGroupStatus struct {
	// ObservedGeneration is the generation of the spec that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Group is the name of the Auto Scaling group.
	// +optional
	Group string `json:"group,omitempty"`
	// ARN is the group's.
	// +optional
	ARN string `json:"arn,omitempty"`
	// Operator is who owns the group at AWS, such as EKS, where it is not its
	// account: it cannot be changed then.
	// +optional
	Operator string `json:"operator,omitempty"`
	// Min, Max and Desired are its sizes.
	// +kubebuilder:default=0
	// +optional
	Min int32 `json:"min"`
	// +kubebuilder:default=0
	// +optional
	Max int32 `json:"max"`
	// +kubebuilder:default=0
	// +optional
	Desired int32 `json:"desired"`
	// Instances counts its instances, by where they are.
	// +optional
	Instances InstanceCounts `json:"instances,omitempty"`
	// PendingActions counts the instances that a hook holds.
	// +kubebuilder:default=0
	// +optional
	PendingActions int32 `json:"pendingActions"`
	// Actions are what hooks hold, the oldest first; at most 50.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Actions []LifecycleAction `json:"actions,omitempty"`
	// Boots is how long instances took to come into service.
	// +optional
	Boots *BootTimes `json:"boots,omitempty"`
	// ConsecutiveFailures counts launches that failed since the last that did not.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`
	// Failures are the last launches and answers that failed, newest first; at
	// most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Failures []GroupFailure `json:"failures,omitempty"`
	// Suspended are the processes of the group that somebody has suspended.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Suspended []string `json:"suspended,omitempty"`
	// Unhooked are instances on their way into service, or in the warm pool, that
	// were launched before the launch hook was there: nothing waited for them to be
	// set up. At most 50.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Unhooked []string `json:"unhooked,omitempty"`
	// Findings are what is wrong with the group, the worst first; at most 20.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Findings []GroupFinding `json:"findings,omitempty"`
	// Deletion says what deleting the object will do.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Deletion string `json:"deletion,omitempty"`
	// Conditions are Found, HooksReady, Synced and, computed from them, Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InstanceCounts counts instances by where they are in the group's lifecycle.
type InstanceCounts struct {
	// +kubebuilder:default=0
	// +optional
	InService int32 `json:"inService"`
	// Joining are on their way into service.
	// +kubebuilder:default=0
	// +optional
	Joining int32 `json:"joining"`
	// Warming are on their way into the warm pool.
	// +optional
	Warming int32 `json:"warming,omitempty"`
	// Warm are in the warm pool.
	// +kubebuilder:default=0
	// +optional
	Warm int32 `json:"warm"`
	// Leaving are on their way out, of service or of the warm pool.
	// +kubebuilder:default=0
	// +optional
	Leaving int32 `json:"leaving"`
	// Retained were abandoned while they left, and wait for somebody.
	// +optional
	Retained int32 `json:"retained,omitempty"`
	// Other are in standby, being detached, or in a state that is not known.
	// +optional
	Other int32 `json:"other,omitempty"`
}

// LifecycleAction is an instance that a hook holds.
type LifecycleAction struct {
	// InstanceID is the instance.
	InstanceID string `json:"instanceID"`
	// State is its lifecycle state, as Auto Scaling writes it.
	State string `json:"state"`
	// NodeName is its node, if it has one.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Hook is the hook that Lifeboat is to answer; empty: none of its own.
	// +optional
	Hook string `json:"hook,omitempty"`
	// Since is when it was first seen to be held.
	Since metav1.Time `json:"since"`
	// Expires is when the hook's time is out, as far as is known.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// LastHeartbeat is when it was last extended.
	// +optional
	LastHeartbeat *metav1.Time `json:"lastHeartbeat,omitempty"`
	// Message is a sentence that says what it waits for.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// BootTimes tells how long instances took from the moment they were launched, or
// taken out of the pool, until they were in service, in seconds.
type BootTimes struct {
	// Count is how many were seen.
	Count int32 `json:"count"`
	// LastSeconds and LongestSeconds are of those.
	LastSeconds    int32 `json:"lastSeconds"`
	LongestSeconds int32 `json:"longestSeconds"`
}

// GroupFailure is something that failed in a group.
type GroupFailure struct {
	Time metav1.Time `json:"time"`
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}

// GroupFinding is one thing that is wrong with a group, and how to mend it.
type GroupFinding struct {
	// Severity is broken, unknown, warning or info.
	// +kubebuilder:validation:MaxLength=63
	Severity string `json:"severity"`
	// ID names the kind of finding, such as launch-hook-missing.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Message says what is wrong, and what that does.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// Mend is what to do about it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Mend string `json:"mend,omitempty"`
}
