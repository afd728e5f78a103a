package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Interruption records all notices about one instance and the progress of its
// drain. It is named after the instance, so repeated notices from several
// sources update the same object.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=lbint
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.kind`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Deadline",type=string,format=date-time,JSONPath=`.status.deadline.time`
// +kubebuilder:printcolumn:name="Lost",type=integer,JSONPath=`.status.drain.podCounts.lost`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.status.decision.action`,priority=1
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.drain.podCounts.total`,priority=1
// +kubebuilder:printcolumn:name="Moved",type=integer,JSONPath=`.status.drain.podCounts.moved`,priority=1
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.drain.podCounts.waiting`,priority=1
// +kubebuilder:printcolumn:name="Replacement",type=string,JSONPath=`.status.drain.replacement.phase`,priority=1
// +kubebuilder:printcolumn:name="Lifecycle Hook",type=string,JSONPath=`.status.lifecycleHooks.message`,priority=1
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.decision.policy`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Interruption struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +structType=atomic
	// +required
	Spec InterruptionSpec `json:"spec"`
	// Status is the decision and the progress. Only Lifeboat's controllers
	// write it, so the API server does not need to track field ownership.
	// +structType=atomic
	// +optional
	Status InterruptionStatus `json:"status,omitempty"`
}

// InterruptionList is a list of Interruption.
//
// +kubebuilder:object:root=true
type InterruptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Interruption `json:"items"`
}

// InterruptionSpec holds the notices about the instance, and what people have
// requested. Intake writes the notices. `lifeboat approve`, `hold` and
// `release` write the other fields.
//
// +kubebuilder:validation:XValidation:rule="self.instanceID == oldSelf.instanceID",message="instanceID cannot change: an Interruption is the record of one instance"
type InterruptionSpec struct {
	// InstanceID is the cloud's id of the instance, such as
	// i-0a1b2c3d4e5f60718.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=63
	// +required
	InstanceID string `json:"instanceID"`
	// NodeName is the name of the instance's node when the first notice was
	// recorded. Some clouds reuse node names; NodeUID tells the nodes apart.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// NodeUID is the UID of that node.
	// +optional
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Notices lists all notices about the instance, in order of arrival. A
	// repeated notice is recorded once.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=id
	// +required
	Notices []Notice `json:"notices"`
	// Approval is a person's approval. A policy can require it, and a failed
	// hook with onFailure Hold waits for it.
	// +optional
	Approval *UserAction `json:"approval,omitempty"`
	// Hold is a person's request to move no pods yet. Before a hard deadline it
	// holds a pod only until the pod's last call.
	// +optional
	Hold *UserAction `json:"hold,omitempty"`
	// Released is the request that ended the latest hold.
	// +optional
	Released *UserAction `json:"released,omitempty"`
}

// Phase is a one-word summary, computed from the conditions. Lifeboat never
// reads it as input.
type Phase string

// The phases of an Interruption, in their usual order. The phase is empty until
// the first reconcile.
const (
	PhaseScheduled        Phase = "Scheduled"        // it begins later, at its time or in its window
	PhaseAwaitingApproval Phase = "AwaitingApproval" // a person must approve first
	PhaseQueued           Phase = "Queued"           // the policy's budget is used up by other nodes
	PhaseCordoned         Phase = "Cordoned"         // the node takes no new pods, and no pod has been asked to leave yet
	PhaseDraining         Phase = "Draining"         // pods leave
	PhaseDrained          Phase = "Drained"          // no pod is left that had to leave; the instance still runs
	PhaseCompleted        Phase = "Completed"        // the instance is gone, or the change is over
	PhaseIgnored          Phase = "Ignored"          // policy says to do nothing
	PhaseNotified         Phase = "Notified"         // policy says to report it only
	PhaseCancelled        Phase = "Cancelled"        // the notice was withdrawn, or the node outlived it
)

// InterruptionStatus is the decision and the progress. Only Lifeboat's
// controllers write it.
type InterruptionStatus struct {
	// Phase is a one-word summary, computed from the conditions.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Kind is the kind of the notice that determines the decision. A change of the
	// instance's state that follows a drain does not change it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// NodeName is the name of the instance's node.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Decision is the latest decision of the policy.
	// +optional
	Decision *Decision `json:"decision,omitempty"`
	// Deadline is the deadline in effect: the earliest hard one, otherwise the
	// earliest soft one.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// Drain is the current drain of the node, or the latest one. A new drain
	// replaces it as a whole: for another notice, or after the node was
	// restored.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`
	// Timeline lists what happened and when, oldest first, at most 50 entries.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// Notifications is the delivery progress of each of the policy's notifications.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Notifications []NotificationStatus `json:"notifications,omitempty"`
	// LifecycleHooks is the answer to the lifecycle hooks that hold the instance while
	// it leaves its Auto Scaling group. It is empty if no hook holds it.
	// +optional
	LifecycleHooks *LifecycleHooksStatus `json:"lifecycleHooks,omitempty"`
	// LastNoticeID is the id of the newest notice that was processed.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	LastNoticeID string `json:"lastNoticeID,omitempty"`
	// History lists what ended earlier, oldest first: each reason for which Lifeboat
	// acted, or would have acted, and how it ended. When the Interruption is completed,
	// the last entry is about what status.drain shows in full.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	History []HistoryEntry `json:"history,omitempty"`
	// CompletionTime is when nothing was left to do. A later notice opens the
	// record again.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`
	// Conditions follow the Kubernetes conventions: Accepted, Cordoned,
	// Replaced, Drained, Corroborated, RequestsAccepted, WiringDegraded, OutOfService and,
	// computed from them, Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Outcome is how a reason to act on an instance ended.
// +kubebuilder:validation:Enum=Completed;Cancelled;Handled;Postponed;Released;TakenOver
type Outcome string

// The outcomes. After the first two nothing was left to do about the instance.
const (
	// OutcomeCompleted: the instance is gone, or the change is over.
	OutcomeCompleted Outcome = "Completed"
	// OutcomeCancelled: the notice was withdrawn, or the node outlived it.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeHandled: the notice was handled, such as a reboot that is over, and another one stands.
	OutcomeHandled Outcome = "Handled"
	// OutcomePostponed: the change was moved to a later time, and the node was restored.
	OutcomePostponed Outcome = "Postponed"
	// OutcomeReleased: another notice decides now, which does not drain the node yet. The node was restored.
	OutcomeReleased Outcome = "Released"
	// OutcomeTakenOver: another notice took the drain over while it was under way.
	OutcomeTakenOver Outcome = "TakenOver"
)

// HistoryEntry is a reason to act on an instance that has ended.
type HistoryEntry struct {
	// Kind is the kind of the notice.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// Subject is what the drain was for, as in status.drain.subject.
	// +kubebuilder:validation:MaxLength=640
	// +optional
	Subject string `json:"subject,omitempty"`
	// Outcome is how it ended.
	// +required
	Outcome Outcome `json:"outcome"`
	// StartTime is when the drain began to serve this reason. It is empty if no drain
	// began.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// EndTime is when it ended.
	// +required
	EndTime metav1.MicroTime `json:"endTime"`
	// PodsTotal is the number of pods that the drain had to move.
	// +optional
	PodsTotal int32 `json:"podsTotal,omitempty"`
	// PodsMoved is the number of pods that left within their grace period.
	// +optional
	PodsMoved int32 `json:"podsMoved,omitempty"`
	// PodsLost is the number of pods that were still on the node when its instance
	// stopped.
	// +optional
	PodsLost int32 `json:"podsLost,omitempty"`
	// HandledNotices lists the keys of the notices that need nothing any more, as
	// long as spec.notices has them. The key of a planned change stays the same while
	// its start and its action do. The key of another notice is its id.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	HandledNotices []string `json:"handledNotices,omitempty"`
}

// DecisionMode says whether a decision is carried out.
// +kubebuilder:validation:Enum=Act;Observe
type DecisionMode string

// The modes of a decision.
const (
	// ModeAct: the decision is carried out.
	ModeAct DecisionMode = "Act"
	// ModeObserve: the controller runs with mode Observe, and only says what it would do.
	ModeObserve DecisionMode = "Observe"
)

// Decision is what the policy decided, and which rule decided it.
type Decision struct {
	// Mode says whether the decision is carried out; empty means Act.
	// +optional
	Mode DecisionMode `json:"mode,omitempty"`
	// Action is the action to take.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Action Action `json:"action"`
	// Policy is the InterruptionPolicy whose rule matched. It is empty for the
	// built-in defaults.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Policy string `json:"policy,omitempty"`
	// Rule is the name of the rule, or its index in the policy.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Rule string `json:"rule,omitempty"`
	// EffectivePolicy is the policy that selects the node. Its workloads, budget,
	// hooks and notifications apply, even if none of its rules matches and a
	// default rule decides. It is empty if no policy selects the node.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	EffectivePolicy string `json:"effectivePolicy,omitempty"`
	// Strategy says how pods are moved, for Drain and Terminate.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Replacement says whether replacement capacity starts before the drain,
	// for Drain and Terminate.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Replacement Replacement `json:"replacement,omitempty"`
	// Message explains the decision in one sentence.
	// +kubebuilder:validation:MaxLength=32768
	// +required
	Message string `json:"message"`
}

// PodCounts counts the pods of an interrupted node. It does not count pods that
// stay: DaemonSet pods, static pods and finished pods.
type PodCounts struct {
	// Total is the number of pods to move.
	// +kubebuilder:default=0
	// +optional
	Total int32 `json:"total"`
	// Moved is the number of pods that left within their grace period.
	// +kubebuilder:default=0
	// +optional
	Moved int32 `json:"moved"`
	// Leaving is the number of pods that are terminating.
	// +kubebuilder:default=0
	// +optional
	Leaving int32 `json:"leaving"`
	// Waiting is the number of pods that are not evicted yet.
	// +kubebuilder:default=0
	// +optional
	Waiting int32 `json:"waiting"`
	// Lost is the number of pods that were still on the node when its instance
	// stopped.
	// +kubebuilder:default=0
	// +optional
	Lost int32 `json:"lost"`
}

// PodState is the state of a pod of an interrupted node.
// +kubebuilder:validation:Enum=Waiting;Surging;Evicting;Refused;Leaving;Left;Lost
type PodState string

// The states of a pod.
const (
	// PodWaiting: the pod must leave, but not now; the reason says what it waits for.
	PodWaiting PodState = "Waiting"
	// PodSurging: its successor is started first.
	PodSurging PodState = "Surging"
	// PodEvicting: the pod is evicted or deleted now.
	PodEvicting PodState = "Evicting"
	// PodRefused: its eviction is due, and the last request failed.
	PodRefused PodState = "Refused"
	// PodLeaving: the pod was asked to stop.
	PodLeaving PodState = "Leaving"
	// PodLeft: the pod has left within its grace period.
	PodLeft PodState = "Left"
	// PodLost: the instance stopped before the pod had left.
	PodLost PodState = "Lost"
)

// PodStatus is a pod that must leave, or has left, an interrupted node.
type PodStatus struct {
	// Namespace is the pod's namespace.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
	// Name is the pod's name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// UID tells the pod apart from another one with the same name.
	// +required
	UID types.UID `json:"uid"`
	// Owner is the kind and name of the pod's controller, such as ReplicaSet/web-5d4.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	Owner string `json:"owner,omitempty"`
	// State is Waiting, Surging, Evicting, Refused, Leaving, Left or Lost.
	// +required
	State PodState `json:"state"`
	// Reason is one CamelCase word that says why the pod is in this state.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Reason PodReason `json:"reason"`
	// Message explains the state in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// LastCallTime is the latest time at which the pod must be asked to stop.
	// +optional
	LastCallTime *metav1.Time `json:"lastCallTime,omitempty"`
	// SurgeTime is when its successor was requested.
	// +optional
	SurgeTime *metav1.Time `json:"surgeTime,omitempty"`
	// EvictionTime is when the pod was asked to stop.
	// +optional
	EvictionTime *metav1.Time `json:"evictionTime,omitempty"`
	// DepartureTime is when the controller saw that the pod is gone. It is empty
	// if the pod went while no controller ran: then it is unknown.
	// +optional
	DepartureTime *metav1.Time `json:"departureTime,omitempty"`
	// SpecGraceSeconds is the grace period in the pod's spec, in seconds.
	// +optional
	SpecGraceSeconds *int64 `json:"specGraceSeconds,omitempty"`
	// GraceSeconds is the grace period that the pod was given, in seconds.
	// +optional
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
	// Overridden names what would have held the pod and was overridden because
	// of the deadline, such as a PodDisruptionBudget.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Overridden string `json:"overridden,omitempty"`
	// Returned is true if the pod tolerates the cordon, and the scheduler
	// placed it on the node after that. Counts of pods leave it out, unless it
	// is lost: they have the pod whose successor it is.
	// +optional
	Returned bool `json:"returned,omitempty"`
}
