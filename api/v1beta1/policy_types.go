package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InterruptionPolicy says what to do about which kinds of notice on which
// nodes. If several policies select a node, the one with the highest priority
// applies; of equal priorities, the name that sorts first. The built-in
// defaults apply if no policy selects the node, or none of its rules matches.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=lbpol
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InterruptionPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec InterruptionPolicySpec `json:"spec"`
	// +optional
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

// InterruptionPolicySpec is the content of a policy.
type InterruptionPolicySpec struct {
	// Nodes selects nodes. Empty selects every node.
	// +optional
	Nodes NodeSelector `json:"nodes,omitempty"`
	// Priority ranks policies that select the same node. The highest applies.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// Rules are tried in order. The first rule that matches the notice applies.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +required
	Rules []Rule `json:"rules"`
	// Workloads give some pods a different order or strategy. The first one
	// that matches a pod applies.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Workloads []Workload `json:"workloads,omitempty"`
	// Budget limits how many of the policy's nodes are drained at the same
	// time.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
	// Terminations limits how many nodes of a pool the action Terminate handles
	// at the same time.
	// +optional
	Terminations *Terminations `json:"terminations,omitempty"`
	// WaitForDeregistration is for how long pods wait at most until load balancers send no new
	// connections to the node's instance. It is for the target groups of TargetGroupBindings with
	// target type instance. Pods do not wait past their last call, nor if AWS refuses to answer.
	// Without it, pods do not wait.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="waitForDeregistration must be between 1s and 1h, such as 1m"
	// +optional
	WaitForDeregistration *metav1.Duration `json:"waitForDeregistration,omitempty"`
	// Hooks run before or after the drain, in this order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []Hook `json:"hooks,omitempty"`
	// Notifications report what happens to the policy's nodes.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Notifications []Notification `json:"notifications,omitempty"`
}

// NodeSelector selects nodes. A node matches when all given fields match.
type NodeSelector struct {
	// NodePools lists names of Karpenter NodePools (label
	// karpenter.sh/nodepool).
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	NodePools []string `json:"nodePools,omitempty"`
	// NodeGroups lists names of node groups, which are matched against the
	// labels of Lifeboat NodeGroups, EKS node groups, eksctl node groups and
	// kOps instance groups.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +kubebuilder:validation:items:MaxLength=255
	// +optional
	NodeGroups []string `json:"nodeGroups,omitempty"`
	// MatchLabels lists labels that a node must have with these values.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions lists label requirements, as in Kubernetes selectors.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// Action is what Lifeboat does about a notice.
type Action string

const (
	// ActionIgnore only records the notice.
	ActionIgnore Action = "Ignore"
	// ActionNotify records the notice, sends notifications and marks the node
	// as at risk (taint with effect PreferNoSchedule).
	ActionNotify Action = "Notify"
	// ActionCordon also cordons the node.
	ActionCordon Action = "Cordon"
	// ActionDrain also moves the node's pods.
	ActionDrain Action = "Drain"
	// ActionTerminate drains the node and then terminates the instance, so that
	// Karpenter or the Auto Scaling group launches another one.
	ActionTerminate Action = "Terminate"
)

// Strategy says how a pod is moved.
type Strategy string

const (
	// StrategyEvict uses the Eviction API. The successor starts after the pod
	// has begun to stop.
	StrategyEvict Strategy = "Evict"
	// StrategySurge starts the successor first, for pods of a Deployment that
	// may run twice. It evicts all other pods.
	StrategySurge Strategy = "Surge"
	// StrategyNever leaves the pod on the node until the instance stops.
	StrategyNever Strategy = "Never"
)

// Replacement says whether replacement capacity starts before the drain.
type Replacement string

const (
	// ReplacementBefore starts replacement capacity first. Pods wait for it,
	// but not longer than their last call.
	ReplacementBefore Replacement = "Before"
	// ReplacementNone leaves new capacity to Karpenter or the Auto Scaling
	// group.
	ReplacementNone Replacement = "None"
)

// Approval says whether a person must approve first.
type Approval string

const (
	// ApprovalRequired waits until a person runs `lifeboat approve NODE`.
	ApprovalRequired Approval = "Required"
	// ApprovalNone starts without approval.
	ApprovalNone Approval = "None"
)

// Unanswered says what happens without an approval.
type Unanswered string

const (
	// UnansweredWait does nothing without an approval, whatever the deadline.
	UnansweredWait Unanswered = "Wait"
	// UnansweredProceed starts one hour before the deadline. Without a deadline
	// it starts one hour after the notice.
	UnansweredProceed Unanswered = "Proceed"
)

// DoNotDisrupt says how Lifeboat treats a pod's do-not-disrupt annotation.
type DoNotDisrupt string

const (
	// DoNotDisruptRespect never evicts such pods, whatever the deadline.
	DoNotDisruptRespect DoNotDisrupt = "Respect"
	// DoNotDisruptUntilLastCall evicts such pods at their last call.
	DoNotDisruptUntilLastCall DoNotDisrupt = "UntilLastCall"
	// DoNotDisruptIgnore treats such pods like all others.
	DoNotDisruptIgnore DoNotDisrupt = "Ignore"
)

// Rule says what to do about some kinds of notices. A field that it does not
// state means what the built-in default of the notice's kind says.
//
// +kubebuilder:validation:XValidation:rule="!has(self.window) || self.action in ['Drain','Cordon','Terminate']",message="window only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || self.action in ['Drain','Cordon','Terminate']",message="notBefore only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.approval) || self.approval == 'None' || self.action in ['Drain','Cordon','Terminate']",message="approval only makes sense with action Cordon, Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.ifUnanswered) || (has(self.approval) && self.approval == 'Required')",message="ifUnanswered says what happens without an approval; write approval: Required as well, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.drainTimeout) || self.action in ['Drain','Terminate']",message="drainTimeout only makes sense with action Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.drainTimeout) || self.action == 'Terminate' || self.kinds.exists(k, k in ['AutoScalingTermination','*'])",message="drainTimeout is for drains that no deadline ends: of kind AutoScalingTermination, or with action Terminate; remove it, or add the kind"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.action in ['Drain','Terminate']",message="strategy only makes sense with action Drain or Terminate; remove it, or change the action"
// +kubebuilder:validation:XValidation:rule="!has(self.replacement) || self.action in ['Drain','Terminate']",message="replacement only makes sense with action Drain or Terminate; remove it, or change the action"
type Rule struct {
	// Name identifies the rule in status and messages. If empty, its index is
	// used.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Kinds lists the kinds of notices that the rule matches, such as
	// SpotInterruption, or "*" for all. The condition Accepted reports kinds
	// that this release does not know.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$`
	// +listType=set
	// +required
	Kinds []string `json:"kinds"`
	// EventTypeCodes limits the rule to notices with one of these codes, in the
	// cloud's own words. "*" matches any characters, and case does not matter:
	// "*_STOP_SCHEDULED" (AWS Health), "instance-stop" (EC2). A notice without
	// a code never matches.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	EventTypeCodes []string `json:"eventTypeCodes,omitempty"`
	// Action is what to do: Ignore, Notify, Cordon, Drain or Terminate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Ignore','Notify','Cordon','Drain','Terminate']",messageExpression="'unknown action ' + self + ': write Ignore, Notify, Cordon, Drain or Terminate'"
	// +required
	Action Action `json:"action"`
	// Approval says whether a person must approve before Lifeboat changes the
	// node: Required or None (the default).
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Required','None']",messageExpression="'unknown approval ' + self + ': write Required or None'"
	// +optional
	Approval Approval `json:"approval,omitempty"`
	// IfUnanswered says what happens without an approval: Wait (the default)
	// does nothing, whatever the deadline. Proceed starts one hour before the
	// deadline, or, without a deadline, one hour after the notice.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Wait','Proceed']",messageExpression="'unknown ifUnanswered ' + self + ': write Wait or Proceed'"
	// +optional
	IfUnanswered Unanswered `json:"ifUnanswered,omitempty"`
	// NotBefore is the earliest start of the action, as a time before a soft
	// deadline, such as 24h. The default is 1h if the rule has no window.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="notBefore must be between 1m and 8760h, such as 24h"
	// +optional
	NotBefore *metav1.Duration `json:"notBefore,omitempty"`
	// DrainTimeout limits a drain that has no deadline. For an
	// AutoScalingTermination, Lifeboat extends the group's hook up to this time
	// (default 1h, at most as long as the hook can be extended). For the action
	// Terminate the default is 2m. When the time is over, all pods have reached
	// their last call.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('48h')",message="drainTimeout must be between 1m and 48h, such as 30m"
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// Window is when the action may start before a soft deadline. If no window
	// opens in time, the action starts one hour before the deadline. A hard
	// deadline does not wait for a window.
	// +optional
	Window *Window `json:"window,omitempty"`
	// DoNotDisrupt says how to treat a pod's do-not-disrupt annotation:
	// Respect, UntilLastCall (the default) or Ignore.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Respect','UntilLastCall','Ignore']",messageExpression="'unknown doNotDisrupt ' + self + ': write Respect, UntilLastCall or Ignore'"
	// +kubebuilder:default=UntilLastCall
	// +optional
	DoNotDisrupt DoNotDisrupt `json:"doNotDisrupt,omitempty"`
	// Strategy says how pods are moved: Surge or Evict. Without it pods are surged while at
	// most 20 nodes are drained at a time, except from instances that are already stopping.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Evict','Surge']",messageExpression="'unknown strategy ' + self + ': write Evict or Surge; Never is for workloads'"
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Replacement says whether replacement capacity starts before the drain:
	// Before or None. Without it, Before is for notices whose built-in default
	// drains the node because the instance ends, and for requests of a person:
	// SpotInterruption, CapacityReservationInterruption,
	// AutoScalingTermination, Requested, and a ScheduledChange that stops or
	// terminates. None is for all others, and for the control plane.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Before','None']",messageExpression="'unknown replacement ' + self + ': write Before or None'"
	// +optional
	Replacement Replacement `json:"replacement,omitempty"`
}

// Window is a recurring period of time.
type Window struct {
	// Schedule is when the window opens, as five cron fields (minute hour
	// day-of-month month day-of-week), such as "0 2 * * *".
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\s*([0-9*,/A-Za-z?-]+\\\\s+){4}[0-9*,/A-Za-z?-]+\\\\s*$')",messageExpression="'schedule \"' + self + '\" is not five cron fields: write minute hour day-of-month month day-of-week, such as \"0 2 * * *\" for 02:00 every day'"
	// +required
	Schedule string `json:"schedule"`
	// Duration is how long the window stays open, from 1m to 168h (7 days).
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="duration must be between 1m and 168h, such as 2h"
	// +required
	Duration metav1.Duration `json:"duration"`
	// TimeZone is an IANA name such as Europe/Berlin. The default is UTC.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self == 'UTC' || self.matches('^[A-Za-z]+(/[A-Za-z0-9_+-]+)+$')",messageExpression="'time zone \"' + self + '\" is not an IANA name: write UTC or one such as Europe/Berlin'"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// InterruptionPolicyStatus says whether the policy is in force.
type InterruptionPolicyStatus struct {
	// Conditions contains Accepted: whether the policy is in force and, if not,
	// why.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
