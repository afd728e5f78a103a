package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Interruption is the durable record of all notices about one instance, and of
// how far its evacuation has come. It is named after the instance, so that
// however often and from wherever a notice arrives, there is one record.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=int
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.kind`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.status.decision.action`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Deadline",type=string,format=date-time,JSONPath=`.status.deadline.time`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods.total`
// +kubebuilder:printcolumn:name="Moved",type=integer,JSONPath=`.status.pods.moved`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.pods.waiting`
// +kubebuilder:printcolumn:name="Lost",type=integer,JSONPath=`.status.pods.lost`
// +kubebuilder:printcolumn:name="Replacement",type=string,JSONPath=`.status.replacement.phase`,priority=1
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.decision.policy`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Interruption struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InterruptionSpec   `json:"spec"`
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

// InterruptionSpec is what was heard, and what people have said about it. Intake
// writes the notices; `lifeboat approve`, `hold` and `release` write the rest.
//
// +kubebuilder:validation:XValidation:rule="self.instanceID == oldSelf.instanceID",message="instanceID cannot change: an Interruption is the record of one instance"
type InterruptionSpec struct {
	// InstanceID is the cloud's id of the instance, such as i-0a1b2c3d4e5f60718.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=63
	InstanceID string `json:"instanceID"`
	// NodeName is the node that the instance was when the first notice was
	// recorded. Node names come again on some clouds; NodeUID tells them apart.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// NodeUID is the UID of that node.
	// +optional
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Notices are all the notices about the instance, oldest arrival first.
	// Repeats of a notice are not added again.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=id
	Notices []Notice `json:"notices"`
	// Approval is a person's go-ahead, where policy requires one or a hook that
	// failed waits for one.
	// +optional
	Approval *Say `json:"approval,omitempty"`
	// Hold is a person's word to move no pod yet. It does not hold a pod past
	// its last call before a hard deadline.
	// +optional
	Hold *Say `json:"hold,omitempty"`
	// Released is a person's word that ended the latest hold.
	// +optional
	Released *Say `json:"released,omitempty"`
}

// Say is what a person has said. The admission policy of the chart sees to it
// that nobody speaks for somebody else.
type Say struct {
	// By is the user's name, as the API server knows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by"`
	// Time is when it was said.
	Time metav1.MicroTime `json:"time"`
	// About is the kind, and the subject if it has one, of the notice that
	// ruled when it was said, with a space between: an approval counts for that
	// only.
	// +kubebuilder:validation:MaxLength=576
	// +optional
	About string `json:"about,omitempty"`
	// Until is when it ends by itself, for a hold.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Note is why.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Note string `json:"note,omitempty"`
}

// Notice is one signal, from one source, that an instance is going away or is
// sick.
type Notice struct {
	// ID is the cloud's own id of the notice where it has one, such as the
	// EventBridge event id; else one derived from its content.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// Kind is what the notice says, such as SpotInterruption. An open string:
	// the kinds that a release knows are in its registry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Source is the way it came in, such as sqs.
	// +kubebuilder:validation:MaxLength=63
	Source string `json:"source"`
	// Time is when the cloud says it issued the notice.
	Time metav1.Time `json:"time"`
	// ReceivedTime is when Lifeboat first took it in.
	ReceivedTime metav1.MicroTime `json:"receivedTime"`
	// Deadline is when the instance will be gone, if the notice tells or
	// implies it.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// EndTime is until when it may happen at the latest, for a change that is
	// scheduled for a span of time that begins at the deadline.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// InstanceAction is what will be done to the instance: terminate, stop,
	// hibernate, reboot, or maintain where it only loses network or power for
	// a moment.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InstanceAction string `json:"instanceAction,omitempty"`
	// InstanceState is the state that the instance has entered, for kinds that
	// report one: stopping, stopped, shutting-down or terminated.
	// +optional
	InstanceState string `json:"instanceState,omitempty"`
	// EventTypeCode is the cloud's own word for it, finer than the kind, such
	// as AWS_EC2_INSTANCE_STOP_SCHEDULED (AWS Health) or instance-stop (EC2).
	// +kubebuilder:validation:MaxLength=128
	// +optional
	EventTypeCode string `json:"eventTypeCode,omitempty"`
	// Subject is what the notice is about, for notices that the cloud updates,
	// such as the ARN of an AWS Health event. Of the notices of one source,
	// kind and subject only the one issued last stands.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Subject string `json:"subject,omitempty"`
	// Withdrawn says that the cloud has taken it back: it was cancelled, or it
	// is over.
	// +optional
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Drill says that somebody sent it on purpose, to try what happens.
	// +optional
	Drill bool `json:"drill,omitempty"`
	// Description is a sentence for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
}

// DeadlineType says whether a deadline can move.
type DeadlineType string

const (
	// DeadlineHard is a deadline that nobody can move, as of a spot reclaim.
	DeadlineHard DeadlineType = "Hard"
	// DeadlineSoft is a deadline that is planned for later, or that is a guess.
	DeadlineSoft DeadlineType = "Soft"
)

// Deadline is when an instance will be gone.
type Deadline struct {
	// Time is the moment itself.
	Time metav1.Time `json:"time"`
	// Type says whether it can move.
	// +kubebuilder:validation:Enum=Hard;Soft
	Type DeadlineType `json:"type"`
}

// Phase is a one-word summary computed from the conditions; it is never input.
type Phase string

// The phases of an Interruption, in the order of its life. One that nobody has
// looked at yet has none.
const (
	PhaseScheduled Phase = "Scheduled"
	// PhaseAwaitingApproval waits for a person.
	PhaseAwaitingApproval Phase = "AwaitingApproval"
	// PhaseQueued waits for its turn in the policy's budget.
	PhaseQueued    Phase = "Queued"
	PhaseCordoned  Phase = "Cordoned"
	PhaseDraining  Phase = "Draining"
	PhaseDrained   Phase = "Drained"
	PhaseCompleted Phase = "Completed"
	PhaseIgnored   Phase = "Ignored"
	PhaseNotified  Phase = "Notified"
	PhaseCancelled Phase = "Cancelled"
)

// InterruptionStatus is what was decided and how far it has come. The
// controller alone writes it.
type InterruptionStatus struct {
	// Phase is a one-word summary computed from the conditions.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Kind is the kind of the notice that rules.
	// +optional
	Kind string `json:"kind,omitempty"`
	// NodeName is the node that the instance is.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Decision is what policy said when it was last asked.
	// +optional
	Decision *Decision `json:"decision,omitempty"`
	// Deadline is the deadline that rules: the earliest hard one, else the
	// earliest soft one.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// Pods counts the pods of the node.
	// +optional
	Pods PodCounts `json:"pods,omitempty"`
	// PodsLeft are the pods that are still on the node and have to leave it,
	// each with what is being done about it and why; at most 300.
	// +kubebuilder:validation:MaxItems=300
	// +listType=atomic
	// +optional
	PodsLeft []PodLeft `json:"podsLeft,omitempty"`
	// Timeline is what happened and when, oldest first; at most 50 entries.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// Hooks are the hooks of the policy that were begun, in their order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`
	// Notified tells, by notification of the policy, how far it has come.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Notified []NotifiedStatus `json:"notified,omitempty"`
	// Replacement is how the capacity stands that is brought up before the pods
	// are moved, where policy wants that.
	// +optional
	Replacement *ReplacementStatus `json:"replacement,omitempty"`
	// Handover is how far the node was given over to Karpenter, which ends it, for
	// a node that Karpenter launched.
	// +optional
	Handover *HandoverStatus `json:"handover,omitempty"`
	// DrainStartTime is when the node was cordoned to be drained.
	// +optional
	DrainStartTime *metav1.MicroTime `json:"drainStartTime,omitempty"`
	// TerminationTime is when the instance was asked to terminate, for the
	// action Terminate.
	// +optional
	TerminationTime *metav1.MicroTime `json:"terminationTime,omitempty"`
	// TerminationMessage says why that could not be done.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	TerminationMessage string `json:"terminationMessage,omitempty"`
	// BootID is the node's boot id when it was first looked at: a node that
	// shows another one was rebooted since.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// Answered are the ids of notices that were dealt with while others still
	// stand, such as a reboot that is over on a node that is to be stopped later.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Answered []string `json:"answered,omitempty"`
	// LastNoticeID is the id of the newest notice that was looked at.
	// +optional
	LastNoticeID string `json:"lastNoticeID,omitempty"`
	// Since is when an earlier interruption of the same instance was over;
	// notices received until then belong to that one.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// CompletionTime is when nothing was left to do. A notice received later
	// opens the record again.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`
	// Conditions follow the Kubernetes conventions: Accepted, Cordoned,
	// Replaced, Drained, WiringDegraded and, computed from them, Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Decision is what policy says is to be done, and by which rule.
type Decision struct {
	// Action is what is done.
	Action Action `json:"action"`
	// Policy is the InterruptionPolicy that rules, or empty for the defaults.
	// +optional
	Policy string `json:"policy,omitempty"`
	// Rule tells the rule: its name, or its place in the policy.
	// +optional
	Rule string `json:"rule,omitempty"`
	// Governor is the policy that has the say about the node: whose workloads,
	// budget, hooks and notifications count, also where none of its rules is for
	// the notice and a default rules. Empty where no policy selects the node.
	// +optional
	Governor string `json:"governor,omitempty"`
	// Strategy is how pods are moved, for Drain and Terminate.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Replacement is whether capacity is brought up before, for Drain and
	// Terminate.
	// +optional
	Replacement Replacement `json:"replacement,omitempty"`
	// Message is a sentence that says why.
	Message string `json:"message"`
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

// PodCounts counts the pods of a doomed node. DaemonSet, static and finished
// pods, which stay, do not count.
type PodCounts struct {
	// Total is the number of pods there were to move.
	// +kubebuilder:default=0
	// +optional
	Total int32 `json:"total"`
	// Moved is the number that have left with the grace they were given.
	// +kubebuilder:default=0
	// +optional
	Moved int32 `json:"moved"`
	// Leaving is the number that were asked to stop and still run.
	// +kubebuilder:default=0
	// +optional
	Leaving int32 `json:"leaving"`
	// Waiting is the number that wait for something; see podsLeft.
	// +kubebuilder:default=0
	// +optional
	Waiting int32 `json:"waiting"`
	// Lost is the number that were still on the node when its instance went.
	// +kubebuilder:default=0
	// +optional
	Lost int32 `json:"lost"`
}

// PodLeft is a pod that is still on a doomed node and has to leave it.
type PodLeft struct {
	// Namespace and Name tell which pod.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID tells it from a pod of the same name before or after.
	UID types.UID `json:"uid"`
	// Verdict is what the plan says about it now: Waits, Surge, Evict, Delete or
	// Leaving; or Lost, where its instance went before it did.
	Verdict string `json:"verdict"`
	// Reason is a sentence that says why.
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
	// LastCall is when the pod has to be asked to stop at the latest.
	// +optional
	LastCall *metav1.Time `json:"lastCall,omitempty"`
	// AskedTime is when the pod was asked to stop.
	// +optional
	AskedTime *metav1.Time `json:"askedTime,omitempty"`
	// GraceSeconds is the time it was given to stop, in seconds.
	// +optional
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
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
