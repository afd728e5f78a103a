package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	// ReplacementOrdered: its NodeClaim is there, and no instance yet.
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

// HandoverStatus is how far a doomed node was given over to Karpenter.
type HandoverStatus struct {
	// NodeClaim is the name of the doomed NodeClaim.
	NodeClaim string `json:"nodeClaim"`
	// UID is that of the doomed NodeClaim.
	UID types.UID `json:"uid"`
	// Time is when it was given over; it is written before that.
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
