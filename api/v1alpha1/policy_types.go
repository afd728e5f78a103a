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
}

// NodeSelector selects nodes by what they carry. All given parts must hold.
type NodeSelector struct {
	// NodePools are names of Karpenter NodePools (the label karpenter.sh/nodepool).
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	NodePools []string `json:"nodePools,omitempty"`
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
// +kubebuilder:validation:XValidation:rule="!has(self.window) || self.action == 'Drain' || self.action == 'Cordon'",message="window only makes sense with action Cordon or Drain; remove it, or change the action"
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
	// Action is what is done: Ignore, Notify, Cordon or Drain.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Ignore','Notify','Cordon','Drain']",messageExpression="'unknown action ' + self + ': write Ignore, Notify, Cordon or Drain'"
	Action Action `json:"action"`
	// DoNotDisrupt says what a pod's do-not-disrupt annotation is worth:
	// Respect, UntilLastCall (the default) or Ignore.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['Respect','UntilLastCall','Ignore']",messageExpression="'unknown doNotDisrupt ' + self + ': write Respect, UntilLastCall or Ignore'"
	// +kubebuilder:default=UntilLastCall
	// +optional
	DoNotDisrupt DoNotDisrupt `json:"doNotDisrupt,omitempty"`
	// Window is when the action may begin, for deadlines that are soft. A hard
	// deadline waits for no window.
	// +optional
	Window *Window `json:"window,omitempty"`
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
