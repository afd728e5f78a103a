package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InterruptionPolicy says what to do, for which nodes, on which kinds of
// notice. Of the policies that select a node, the one with the highest
// priority rules; ties go to the name that sorts first. Where none selects the
// node, or no rule of the one that does matches, the built-in defaults rule.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=intpol
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InterruptionPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InterruptionPolicySpec   `json:"spec"`
	Status InterruptionPolicyStatus `json:"status,omitempty"`
}

// InterruptionPolicyList is a list of InterruptionPolicy.
//
// +kubebuilder:object:root=true
type InterruptionPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InterruptionPolicy `json:"items"`
}

// InterruptionPolicySpec is what a team writes.
type InterruptionPolicySpec struct {
	// Nodes selects nodes; empty selects every node.
	// +optional
	Nodes NodeSelector `json:"nodes,omitempty"`
	// Priority ranks policies that select the same node; the highest rules.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// Rules are tried in order; the first that matches the notice rules.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Rules []Rule `json:"rules"`
	// Workloads treat pods differently by what they are; the first that matches
	// a pod rules it.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Workloads []Workload `json:"workloads,omitempty"`
	// Budget bounds how many of the policy's nodes are drained at the same time.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
	// Terminations bounds how many nodes of a pool the action Terminate takes at
	// the same time.
	// +optional
	Terminations *Terminations `json:"terminations,omitempty"`
	// Hooks run before or after the drain, in their order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []Hook `json:"hooks,omitempty"`
	// Notifications tell people what happens to the policy's nodes.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Notifications []Notification `json:"notifications,omitempty"`
}

// NodeSelector selects nodes by what they carry. All given parts must hold.
type NodeSelector struct {
	// NodePools are names of Karpenter NodePools (the label karpenter.sh/nodepool).
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	NodePools []string `json:"nodePools,omitempty"`
	// NodeGroups are names of node groups: of a NodeGroup of Lifeboat, of EKS,
	// of eksctl, or of an instance group of kOps, as a node's label tells.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	NodeGroups []string `json:"nodeGroups,omitempty"`
	// MatchLabels are labels that a node must carry with these values.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions are label requirements, as in Kubernetes selectors.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// Action is what is done about a notice.
type Action string

const (
	// ActionIgnore does nothing but record.
	ActionIgnore Action = "Ignore"
	// ActionNotify records, reports and marks the node as at risk
	// (PreferNoSchedule).
	ActionNotify Action = "Notify"
	// ActionCordon also keeps new pods off the node.
	ActionCordon Action = "Cordon"
	// ActionDrain also moves its pods.
	ActionDrain Action = "Drain"
	// ActionTerminate drains, and then has the instance terminated, so that
	// whatever provisions it brings up another.
	ActionTerminate Action = "Terminate"
)

// Strategy says how a pod is moved.
type Strategy string

const (
	// StrategyEvict asks the Eviction API, which stops the pod; its successor
	// is started when it is gone or going.
	StrategyEvict Strategy = "Evict"
	// StrategySurge has the successor started first, for pods of a Deployment
	// that may run twice; the others are evicted.
	StrategySurge Strategy = "Surge"
	// StrategyNever leaves the pod where it is. It goes down with the instance.
	StrategyNever Strategy = "Never"
)

// Replacement says whether capacity is brought up before the drain.
type Replacement string

const (
	// ReplacementBefore brings a replacement up first. Pods wait for it, but
	// never past their last call.
	ReplacementBefore Replacement = "Before"
	// ReplacementNone leaves that to whatever provisions nodes.
	ReplacementNone Replacement = "None"
)

// Approval says whether a person has to agree.
type Approval string

const (
	// ApprovalRequired waits for a person's go-ahead: `lifeboat approve NODE`.
	ApprovalRequired Approval = "Required"
	// ApprovalNone waits for nobody.
	ApprovalNone Approval = "None"
)

// Unanswered says what happens where nobody approves.
type Unanswered string

const (
	// UnansweredWait does nothing without approval, whatever the deadline.
	UnansweredWait Unanswered = "Wait"
	// UnansweredProceed goes ahead an hour before the deadline, or an hour after
	// the notice where there is none.
	UnansweredProceed Unanswered = "Proceed"
)

// DoNotDisrupt says what a pod's do-not-disrupt annotation is worth.
type DoNotDisrupt string

const (
	// DoNotDisruptRespect leaves such pods alone, whatever the deadline.
	DoNotDisruptRespect DoNotDisrupt = "Respect"
	// DoNotDisruptUntilLastCall leaves them alone until last call.
	DoNotDisruptUntilLastCall DoNotDisrupt = "UntilLastCall"
	// DoNotDisruptIgnore treats them as any other pod.
	DoNotDisruptIgnore DoNotDisrupt = "Ignore"
)

// Rule says what to do about notices of some kinds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.window) || self.action in ['Drain','Cordon','Terminate']",message="window only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || self.action in ['Drain','Cordon','Terminate']",message="notBefore only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.approval) || self.approval == 'None' || self.action in ['Drain','Cordon','Terminate']",message="approval only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.ifUnanswered) || (has(self.approval) && self.approval == 'Required')",message="ifUnanswered says what happens where nobody approves; write approval: Required as well, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.drainTimeout) || self.action in ['Drain','Terminate']",message="drainTimeout only makes sense with action Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.drainTimeout) || self.action == 'Terminate' || self.kinds.exists(k, k in ['AutoScalingTermination','*'])",message="drainTimeout is for drains that no deadline ends: of kind AutoScalingTermination, or with action Terminate; remove it, or add the kind"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.action in ['Drain','Terminate']",message="strategy only makes sense with action Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.replacement) || self.action in ['Drain','Terminate']",message="replacement only makes sense with action Drain or Terminate; remove it, or change the action"
type Rule struct {
	// Name is used where the rule is reported; else its place is.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Kinds are the kinds that the rule matches, such as SpotInterruption, or
	// "*" for all. An open string: a kind that this release does not know is
	// reported by the condition Accepted.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Kinds []string `json:"kinds"`
	// EventTypeCodes narrow the kinds down to notices with one of these codes,
	// the cloud's own word for what happens. "*" stands for any characters, and
	// case does not matter: "*_STOP_SCHEDULED" (AWS Health), "instance-stop"
	// (EC2). A notice without a code matches none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	EventTypeCodes []string `json:"eventTypeCodes,omitempty"`
	// Action is what is done: Ignore, Notify, Cordon, Drain or Terminate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Ignore','Notify','Cordon','Drain','Terminate']",messageExpression="'unknown action ' + self + ': write Ignore, Notify, Cordon, Drain or Terminate'"
	Action Action `json:"action"`
	// Approval says whether a person has to agree before anything is done to
	// the node: Required or None (the default).
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Required','None']",messageExpression="'unknown approval ' + self + ': write Required or None'"
	// +optional
	Approval Approval `json:"approval,omitempty"`
	// IfUnanswered says what happens where nobody approves: Wait (the default),
	// which does nothing whatever the deadline, or Proceed, which goes ahead an
	// hour before it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Wait','Proceed']",messageExpression="'unknown ifUnanswered ' + self + ': write Wait or Proceed'"
	// +optional
	IfUnanswered Unanswered `json:"ifUnanswered,omitempty"`
	// NotBefore is how long before a soft deadline the action begins at the
	// earliest, such as 24h; an hour where there is no window either.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="notBefore must be between 1m and 8760h, such as 24h"
	// +optional
	NotBefore *metav1.Duration `json:"notBefore,omitempty"`
	// DrainTimeout is how long a drain may take that no deadline ends: of an
	// AutoScalingTermination while Lifeboat extends the group's hook (1h where
	// nothing is said; no longer than the hook can be extended), or in order to
	// terminate (2m). At its end pods have had their last call.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('48h')",message="drainTimeout must be between 1m and 48h, such as 30m"
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// Window is when the action may begin, for deadlines that are soft. A hard
	// deadline waits for no window. Where the window does not open before a soft
	// one, the action begins an hour before it.
	// +optional
	Window *Window `json:"window,omitempty"`
	// DoNotDisrupt says what a pod's do-not-disrupt annotation is worth:
	// Respect, UntilLastCall (the default) or Ignore.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Respect','UntilLastCall','Ignore']",messageExpression="'unknown doNotDisrupt ' + self + ': write Respect, UntilLastCall or Ignore'"
	// +kubebuilder:default=UntilLastCall
	// +optional
	DoNotDisrupt DoNotDisrupt `json:"doNotDisrupt,omitempty"`
	// Strategy says how pods are moved: Evict (the default) or Surge.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Evict','Surge']",messageExpression="'unknown strategy ' + self + ': write Evict or Surge; Never is for workloads'"
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Replacement says whether capacity is brought up before the drain: Before
	// or None.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Before','None']",messageExpression="'unknown replacement ' + self + ': write Before or None'"
	// +optional
	Replacement Replacement `json:"replacement,omitempty"`
}

// Window is a recurring span of time.
type Window struct {
	// Schedule is when the window opens: five cron fields (minute hour
	// day-of-month month day-of-week), such as "0 2 * * *".
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\s*([0-9*,/A-Za-z?-]+\\\\s+){4}[0-9*,/A-Za-z?-]+\\\\s*$')",messageExpression="'schedule \"' + self + '\" is not five cron fields: write minute hour day-of-month month day-of-week, such as \"0 2 * * *\" for 02:00 every day'"
	Schedule string `json:"schedule"`
	// Duration is how long it stays open, at least 1m and at most 7 days.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="duration must be between 1m and 168h, such as 2h"
	Duration metav1.Duration `json:"duration"`
	// TimeZone is an IANA name such as Europe/Berlin; UTC if empty.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self == 'UTC' || self.matches('^[A-Za-z]+(/[A-Za-z0-9_+-]+)+$')",messageExpression="'time zone \"' + self + '\" is not an IANA name: write UTC or one such as Europe/Berlin'"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// InterruptionPolicyStatus says whether the policy is in force.
type InterruptionPolicyStatus struct {
	// Conditions has Accepted: whether the policy is in force and, if not, why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
