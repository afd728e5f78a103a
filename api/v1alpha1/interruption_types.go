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
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.drain.pods.total`
// +kubebuilder:printcolumn:name="Moved",type=integer,JSONPath=`.status.drain.pods.moved`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.drain.pods.waiting`
// +kubebuilder:printcolumn:name="Lost",type=integer,JSONPath=`.status.drain.pods.lost`
// +kubebuilder:printcolumn:name="Replacement",type=string,JSONPath=`.status.drain.replacement.phase`,priority=1
// +kubebuilder:printcolumn:name="Hook",type=string,JSONPath=`.status.answer.message`,priority=1
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.status.decision.policy`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Interruption struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +structType=atomic
	Spec InterruptionSpec `json:"spec"`
	// Status is the decision and the progress. Only Lifeboat's controllers write it,
	// so that the API server need not track the owner of each field.
	// +structType=atomic
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

// InterruptionStatus is the decision and the progress. Only Lifeboat's controllers
// write it.
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
	// Drain is the drain of the node that is under way, or the last one. It is
	// replaced as a whole when another drain begins, for another notice or after
	// the node was restored.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`
	// Timeline is what happened and when, oldest first; at most 50 entries.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// Notified tells, by notification of the policy, how far it has come.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Notified []NotifiedStatus `json:"notified,omitempty"`
	// Answer is what the lifecycle hooks are told that hold the instance on its
	// way out of its Auto Scaling group, where there are any.
	// +optional
	Answer *AnswerStatus `json:"answer,omitempty"`
	// Answered are the ids of notices in the spec that were handled while others
	// still stand, such as a reboot that is over on a node that stops later.
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Answered []string `json:"answered,omitempty"`
	// LastNoticeID is the id of the newest notice that was looked at.
	// +optional
	LastNoticeID string `json:"lastNoticeID,omitempty"`
	// Since is when an earlier interruption of the same instance was completed.
	// The notices that it handled are listed in answered.
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
	// Waiting is the number that wait for something; see pendingPods.
	// +kubebuilder:default=0
	// +optional
	Waiting int32 `json:"waiting"`
	// Lost is the number that were still on the node when its instance went.
	// +kubebuilder:default=0
	// +optional
	Lost int32 `json:"lost"`
}

// PendingPod is a pod that is still on an interrupted node and has to leave it.
type PendingPod struct {
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
