package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DrainStatus is how one drain of a node stands.
type DrainStatus struct {
	// StartTime is when the node was cordoned for this drain. It identifies the
	// drain. It is empty while the node is only marked, or not yet.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// BootID is the node's boot id when it was marked. A Ready node with another
	// boot id was rebooted since.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// Pods counts the pods of the node.
	// +optional
	Pods PodCounts `json:"pods,omitempty"`
	// PendingPods are the pods that are still on the node and have to leave it,
	// each with its verdict and the reason; at most 300. A pod is listed here
	// before it is evicted.
	// +kubebuilder:validation:MaxItems=300
	// +listType=atomic
	// +optional
	PendingPods []PendingPod `json:"pendingPods,omitempty"`
	// Hooks are the hooks of the policy that were started, in their order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`
	// Replacement is the capacity that starts before the pods move, where the
	// policy wants that.
	// +optional
	Replacement *ReplacementStatus `json:"replacement,omitempty"`
	// NodeClaimDeletion is the deletion of the node's NodeClaim, by which
	// Karpenter terminates a node that it launched.
	// +optional
	NodeClaimDeletion *NodeClaimDeletionStatus `json:"nodeClaimDeletion,omitempty"`
	// TerminationTime is when Lifeboat requested the termination of the instance:
	// for the action Terminate, and for an instance detached from its group.
	// +optional
	TerminationTime *metav1.MicroTime `json:"terminationTime,omitempty"`
	// TerminationMessage is the error of that request.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	TerminationMessage string `json:"terminationMessage,omitempty"`
}

// HookState is how far a hook has come.
type HookState string

// The states of a hook.
const (
	HookRunning   HookState = "Running"
	HookSucceeded HookState = "Succeeded"
	HookFailed    HookState = "Failed"
)

// HookStatus is how far a hook of the policy has come.
type HookStatus struct {
	// Name is the hook's.
	Name string `json:"name"`
	// State is Running, Succeeded or Failed.
	State HookState `json:"state"`
	// Try counts the tries, from 1.
	Try int32 `json:"try"`
	// StartTime is when the latest try began.
	StartTime metav1.MicroTime `json:"startTime"`
	// CompletionTime is when it succeeded, or failed for good.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`
	// Message says what came of the latest try.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// NotifiedStatus is how far a notification of the policy has come.
type NotifiedStatus struct {
	// Name is the notification's.
	Name string `json:"name"`
	// Through is the time of the last entry of the timeline that was told.
	Through metav1.MicroTime `json:"through"`
	// Tries counts failed tries to tell the next.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// Message says what came of the latest try, if it failed.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// ReplacementPhase is how a replacement stands.
type ReplacementPhase string

// The phases of a replacement. Pods wait while it is Queued, Ordered, Launched or
// Retrying, and, before a hard deadline, also once it has Failed: a pod that runs
// is worth more than one that finds no room.
const (
	// NoReplacement: none comes; the reason tells why.
	NoReplacement ReplacementPhase = "None"
	// ReplacementQueued: it waits to be ordered.
	ReplacementQueued ReplacementPhase = "Queued"
	// ReplacementOrdered: its NodeClaim is there, and no instance yet; or its group
	// is to launch one.
	ReplacementOrdered ReplacementPhase = "Ordered"
	// ReplacementLaunched: its instance is, and its node is not Ready yet.
	ReplacementLaunched ReplacementPhase = "Launched"
	// ReplacementReady: pods can be moved to it.
	ReplacementReady ReplacementPhase = "Ready"
	// ReplacementRetrying: Karpenter found no capacity; it is ordered again.
	ReplacementRetrying ReplacementPhase = "Retrying"
	// ReplacementFailed: it is not ordered again.
	ReplacementFailed ReplacementPhase = "Failed"
)

// ReplacementStatus is how the capacity stands that is brought up before pods are
// moved.
type ReplacementStatus struct {
	// Phase is None, Queued, Ordered, Launched, Ready, Retrying or Failed.
	Phase ReplacementPhase `json:"phase"`
	// Reason is one word that says why it is so.
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`
	// Message is a sentence that says why.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// Group is the Auto Scaling group that brings it up, once the instance has
	// been taken out of it; empty for a NodeClaim.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Group string `json:"group,omitempty"`
	// Apart are instances of the group that were on their way into service when
	// the replacement was ordered, and so are not it.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	Apart []string `json:"apart,omitempty"`
	// DetachTime is when the instance was known to be taken out of its group. From
	// then on nobody but Lifeboat terminates it.
	// +optional
	DetachTime *metav1.MicroTime `json:"detachTime,omitempty"`
	// InstanceID is the instance that the group launched for it. No other
	// interruption counts on it.
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// Name is that of its NodeClaim.
	// +optional
	Name string `json:"name,omitempty"`
	// UID is that of its NodeClaim, once it is known to be made.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// NodeName is its node, once there is one.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Tries counts how often it was ordered.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// StartTime is when it was first wanted.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// OrderTime is when it was last ordered; it is written before that.
	// +optional
	OrderTime *metav1.MicroTime `json:"orderTime,omitempty"`
	// ReadyTime is when it was found to be Ready.
	// +optional
	ReadyTime *metav1.MicroTime `json:"readyTime,omitempty"`
}

// NodeClaimDeletionStatus is how the deletion of a NodeClaim stands.
type NodeClaimDeletionStatus struct {
	// NodeClaim is the name of the NodeClaim.
	NodeClaim string `json:"nodeClaim"`
	// UID is that of the NodeClaim.
	UID types.UID `json:"uid"`
	// Time is when the deletion was decided. It is written before the request.
	Time metav1.MicroTime `json:"time"`
	// DeletedTime is when the NodeClaim was known to be deleted, or being so.
	// +optional
	DeletedTime *metav1.MicroTime `json:"deletedTime,omitempty"`
	// ForwardedTime is when the notice was put on Karpenter's own queue, where it
	// has one.
	// +optional
	ForwardedTime *metav1.MicroTime `json:"forwardedTime,omitempty"`
	// Tries counts tries to do so that failed.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// Message says what came of the latest try, if it failed.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// AnswerStatus is what the lifecycle hooks are told that hold an instance on its
// way out of its Auto Scaling group.
type AnswerStatus struct {
	// Group is the Auto Scaling group.
	// +kubebuilder:validation:MaxLength=255
	Group string `json:"group"`
	// Hooks are those that Lifeboat answers; none: those of others hold it, or
	// none does.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []HookAnswer `json:"hooks,omitempty"`
	// State is the lifecycle state that was last seen.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	State string `json:"state,omitempty"`
	// Returns says that the instance goes back to the warm pool of its group.
	// +optional
	Returns bool `json:"returns,omitempty"`
	// HeldTime is since when hooks hold it, as far as is known, never later.
	// +optional
	HeldTime *metav1.MicroTime `json:"heldTime,omitempty"`
	// TimeoutSeconds is how long the most impatient of the hooks waits without a
	// heartbeat.
	// +optional
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// ExpiryTime is when the hooks' time is out unless it is extended.
	// +optional
	ExpiryTime *metav1.MicroTime `json:"expiryTime,omitempty"`
	// EndTime is when the hooks' time is out, and cannot be extended any more.
	// +optional
	EndTime *metav1.MicroTime `json:"endTime,omitempty"`
	// Retains says that an instance that is not drained in time is left to the
	// hook's default result, ABANDON, on which its group retains it.
	// +optional
	Retains bool `json:"retains,omitempty"`
	// LastHeartbeat is when the hooks' time was last extended. It is written
	// before that.
	// +optional
	LastHeartbeat *metav1.MicroTime `json:"lastHeartbeat,omitempty"`
	// Heartbeats counts those.
	// +optional
	Heartbeats int32 `json:"heartbeats,omitempty"`
	// Misses counts heartbeats that failed since the last that did not.
	// +optional
	Misses int32 `json:"misses,omitempty"`
	// AnswerTime is when the hooks were last answered. It is written before that.
	// +optional
	AnswerTime *metav1.MicroTime `json:"answerTime,omitempty"`
	// Tries counts the answers.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// CompletedTime is when the state was seen to have left the wait.
	// +optional
	CompletedTime *metav1.MicroTime `json:"completedTime,omitempty"`
	// Message is a sentence that says how it stands.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// HookAnswer is a lifecycle hook that is answered.
type HookAnswer struct {
	// Name is the hook's.
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
	// Token names its firing, where it is known.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Token string `json:"token,omitempty"`
	// Accepted says that the answer was taken. Only the state tells that the
	// instance goes on.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
}

// TimelineEntry is something that happened.
type TimelineEntry struct {
	// Time is when it happened.
	Time metav1.MicroTime `json:"time"`
	// Reason is a CamelCase word, one of the Reason constants.
	Reason string `json:"reason"`
	// Message is a sentence for people.
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}
