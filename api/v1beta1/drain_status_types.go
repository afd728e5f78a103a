package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DrainStatus is the progress of one drain of a node.
type DrainStatus struct {
	// StartTime is when the node was cordoned for this drain. It identifies the
	// drain. It is empty before the cordon, and for a node that is only marked
	// as at risk.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// Kind is the kind of the notice for which the node was marked, cordoned or
	// drained. A change of the instance's state that follows does not change it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// Subject is what that notice is about: its kind, and the cloud's id of the
	// change if there is one. Approval, window and budget count as passed only
	// for this subject. If another one decides that would not begin now,
	// the node is restored first.
	// +kubebuilder:validation:MaxLength=640
	// +optional
	Subject string `json:"subject,omitempty"`
	// SubjectTime is when the drain began to serve this subject.
	// +optional
	SubjectTime *metav1.MicroTime `json:"subjectTime,omitempty"`
	// BootID is the node's boot id when Lifeboat marked the node for a planned
	// reboot. If a Ready node has another boot id, it was rebooted since then.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	BootID string `json:"bootID,omitempty"`
	// PodCounts counts the pods of the node.
	// +optional
	PodCounts PodCounts `json:"podCounts,omitempty"`
	// Pods lists the pods that must leave the node, and those that have left it,
	// at most 300. Lifeboat lists a pod here before it evicts it.
	// +kubebuilder:validation:MaxItems=300
	// +listType=map
	// +listMapKey=uid
	// +optional
	Pods []PodStatus `json:"pods,omitempty"`
	// Deregistration is why pods do not wait for load balancers any more:
	// Deregistered, DeregistrationTimedOut or DeregistrationUnknown. It is empty
	// while they wait, and without waitForDeregistration.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Deregistration string `json:"deregistration,omitempty"`
	// Hooks lists the policy's hooks that were started, in the policy's order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`
	// Replacement is the replacement capacity that starts before the pods move,
	// if the policy wants that.
	// +optional
	Replacement *ReplacementStatus `json:"replacement,omitempty"`
	// NodeClaimDeletion is the deletion of the node's NodeClaim. Karpenter then
	// terminates the node.
	// +optional
	NodeClaimDeletion *NodeClaimDeletionStatus `json:"nodeClaimDeletion,omitempty"`
	// LifecycleHooksDueTime is when the controller last confirmed, past its
	// caches, that nothing on the node is needed any more or that its time is
	// over, and that the node belongs to the instance. Lifecycle hooks are
	// completed only soon after that.
	// +optional
	LifecycleHooksDueTime *metav1.MicroTime `json:"lifecycleHooksDueTime,omitempty"`
	// TerminationTime is when Lifeboat last requested the termination of the
	// instance: for the action Terminate, and for an instance detached from its
	// group.
	// +optional
	TerminationTime *metav1.MicroTime `json:"terminationTime,omitempty"`
	// TerminationTries counts the requests that EC2 answered. The wait for the next one grows
	// with it.
	// +optional
	TerminationTries int32 `json:"terminationTries,omitempty"`
	// TerminationMessage is the error of that request.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	TerminationMessage string `json:"terminationMessage,omitempty"`
}

// HookState is the state of a hook.
type HookState string

// The states of a hook.
const (
	HookRunning   HookState = "Running"
	HookSucceeded HookState = "Succeeded"
	HookFailed    HookState = "Failed"
)

// HookStatus is the progress of one of the policy's hooks.
type HookStatus struct {
	// Name is the name of the hook.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// State is Running, Succeeded or Failed.
	// +kubebuilder:validation:MaxLength=63
	// +required
	State HookState `json:"state"`
	// Try is the number of the latest try, from 1.
	// +required
	Try int32 `json:"try"`
	// StartTime is when the latest try started.
	// +required
	StartTime metav1.MicroTime `json:"startTime"`
	// CompletionTime is when the hook succeeded, or when its last try failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`
	// Message is the result of the latest try.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// NotificationStatus is the delivery progress of one of the policy's notifications.
type NotificationStatus struct {
	// Name is the name of the notification.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// LastDeliveredTime is the time of the latest timeline entry that was sent.
	// +required
	LastDeliveredTime metav1.MicroTime `json:"lastDeliveredTime"`
	// Tries counts the failed tries to send the next entry.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// Message is the error of the latest try, if it failed.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// ReplacementPhase is the phase of a replacement.
type ReplacementPhase string

// The phases of a replacement. Pods wait in Queued, Ordered, Launched and
// Retrying. Before a hard deadline pods also wait in Failed, because a pod that
// runs is better than one that finds no node.
const (
	// NoReplacement: no replacement starts; the reason says why.
	NoReplacement ReplacementPhase = "None"
	// ReplacementQueued: the replacement is not requested yet.
	ReplacementQueued ReplacementPhase = "Queued"
	// ReplacementOrdered: the NodeClaim exists, or the group was asked to
	// launch, and there is no instance yet.
	ReplacementOrdered ReplacementPhase = "Ordered"
	// ReplacementLaunched: the instance exists, and its node is not Ready yet.
	ReplacementLaunched ReplacementPhase = "Launched"
	// ReplacementReady: pods can move to it.
	ReplacementReady ReplacementPhase = "Ready"
	// ReplacementRetrying: Karpenter found no capacity, and Lifeboat requests
	// it again.
	ReplacementRetrying ReplacementPhase = "Retrying"
	// ReplacementFailed: Lifeboat does not request it again.
	ReplacementFailed ReplacementPhase = "Failed"
)

// ReplacementStatus is the progress of the capacity that starts before pods
// move.
type ReplacementStatus struct {
	// Phase is None, Queued, Ordered, Launched, Ready, Retrying or Failed.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Phase ReplacementPhase `json:"phase"`
	// Reason is one CamelCase word that explains the phase.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Reason string `json:"reason"`
	// Message explains the phase in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// Group is the Auto Scaling group that launches the replacement, after the
	// instance was detached from it. It is empty for a NodeClaim.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Group string `json:"group,omitempty"`
	// PreexistingInstanceIDs lists instances of the group that cannot be the replacement,
	// because they were already launching when it was requested.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	PreexistingInstanceIDs []string `json:"preexistingInstanceIDs,omitempty"`
	// DetachTime is when Lifeboat knew that the instance was detached from its
	// group. From then on only Lifeboat terminates it.
	// +optional
	DetachTime *metav1.MicroTime `json:"detachTime,omitempty"`
	// InstanceID is the instance that the group launched as the replacement. No
	// other interruption uses it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// Name is the name of the NodeClaim.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// UID is the UID of the NodeClaim, once it exists.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// NodeName is the name of the replacement's node, once it exists.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Tries counts how often the replacement was requested.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// StartTime is when the replacement was first needed.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// OrderTime is when it was last requested. Lifeboat writes it before the
	// request.
	// +optional
	OrderTime *metav1.MicroTime `json:"orderTime,omitempty"`
	// ReadyTime is when its node was Ready.
	// +optional
	ReadyTime *metav1.MicroTime `json:"readyTime,omitempty"`
}

// NodeClaimDeletionStatus is the progress of the deletion of a NodeClaim.
type NodeClaimDeletionStatus struct {
	// NodeClaim is the name of the NodeClaim.
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeClaim string `json:"nodeClaim"`
	// UID is the UID of the NodeClaim.
	// +required
	UID types.UID `json:"uid"`
	// Time is when Lifeboat decided to delete it. It is written before the
	// request.
	// +required
	Time metav1.MicroTime `json:"time"`
	// DeletedTime is when the NodeClaim was known to be deleted or terminating.
	// +optional
	DeletedTime *metav1.MicroTime `json:"deletedTime,omitempty"`
	// ForwardedTime is when Lifeboat sent the notice to Karpenter's own queue,
	// if Karpenter has one.
	// +optional
	ForwardedTime *metav1.MicroTime `json:"forwardedTime,omitempty"`
	// Tries counts the failed tries to delete or to forward.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// Message is the error of the latest try, if it failed.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// LifecycleHooksStatus is the progress of the lifecycle hooks that hold
// an instance while it leaves its Auto Scaling group.
type LifecycleHooksStatus struct {
	// Group is the name of the Auto Scaling group.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Group string `json:"group"`
	// Hooks lists the hooks that Lifeboat answers. It is empty if no hook holds
	// the instance, or only hooks of others do.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []LifecycleHookStatus `json:"hooks,omitempty"`
	// State is the latest known lifecycle state.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	State string `json:"state,omitempty"`
	// ReturnsToWarmPool says that the instance returns to the warm pool of its group.
	// +optional
	ReturnsToWarmPool bool `json:"returnsToWarmPool,omitempty"`
	// WaitingSince is the earliest known time at which hooks held the instance.
	// +optional
	WaitingSince *metav1.MicroTime `json:"waitingSince,omitempty"`
	// TimeoutSeconds is the shortest heartbeat timeout of the hooks.
	// +optional
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// ExpiryTime is when the hooks time out without another heartbeat.
	// +optional
	ExpiryTime *metav1.MicroTime `json:"expiryTime,omitempty"`
	// EndTime is when the hooks time out and cannot be extended any more.
	// +optional
	EndTime *metav1.MicroTime `json:"endTime,omitempty"`
	// RetainOnAbandon says that Lifeboat does not answer for an instance that is not
	// drained in time. The hook's default result, ABANDON, then makes the group
	// retain it.
	// +optional
	RetainOnAbandon bool `json:"retainOnAbandon,omitempty"`
	// LastHeartbeat is when the hooks were last extended. Lifeboat writes it
	// before the request.
	// +optional
	LastHeartbeat *metav1.MicroTime `json:"lastHeartbeat,omitempty"`
	// Heartbeats counts the heartbeats.
	// +optional
	Heartbeats int32 `json:"heartbeats,omitempty"`
	// FailedHeartbeats counts the failed heartbeats since the latest successful one.
	// +optional
	FailedHeartbeats int32 `json:"failedHeartbeats,omitempty"`
	// CompleteCallTime is when the hooks were last answered. Lifeboat writes it
	// before the request.
	// +optional
	CompleteCallTime *metav1.MicroTime `json:"completeCallTime,omitempty"`
	// Tries counts the answers.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// CompletedTime is when the instance was seen to have left the wait state.
	// +optional
	CompletedTime *metav1.MicroTime `json:"completedTime,omitempty"`
	// Message describes the current state in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// LifecycleHookStatus is a lifecycle hook that Lifeboat completes.
type LifecycleHookStatus struct {
	// Name is the name of the hook.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`
	// Token identifies this invocation of the hook, if known.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Token string `json:"token,omitempty"`
	// Accepted says that AWS accepted the answer. Only the instance's state
	// shows that it had an effect.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
}

// TimelineEntry is something that happened.
type TimelineEntry struct {
	// Time is when it happened.
	// +required
	Time metav1.MicroTime `json:"time"`
	// Reason is a CamelCase word, one of the Reason constants.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Reason string `json:"reason"`
	// Message describes the entry in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Message string `json:"message"`
}
