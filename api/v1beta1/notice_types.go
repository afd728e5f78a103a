package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Notice is one message from one source that an instance will stop or is
// impaired.
type Notice struct {
	// ID is the cloud's id of the notice, such as the EventBridge event id. If
	// the cloud has none, Lifeboat derives one from the content.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`
	// Kind classifies the notice, such as SpotInterruption. It is an open
	// string, because later releases can add kinds, and the value of a taint.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// Source is the intake that delivered the notice, such as sqs.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Source string `json:"source"`
	// Time is when the cloud issued the notice.
	// +required
	Time metav1.Time `json:"time"`
	// ReceivedTime is when Lifeboat first received the notice.
	// +required
	ReceivedTime metav1.MicroTime `json:"receivedTime"`
	// Deadline is when the instance will stop, if the notice states or implies
	// it.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// EndTime is the end of the scheduled time window, which starts at the
	// deadline.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// InstanceAction is what the cloud will do to the instance: terminate,
	// stop, hibernate, reboot, maintain (a short loss of network or power) or
	// return (to the warm pool of its group).
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InstanceAction string `json:"instanceAction,omitempty"`
	// InstanceState is the new state of the instance, for kinds that report
	// one: stopping, stopped, shutting-down or terminated.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InstanceState string `json:"instanceState,omitempty"`
	// EventTypeCode is the cloud's own code, more specific than the kind, such
	// as AWS_EC2_INSTANCE_STOP_SCHEDULED (AWS Health) or instance-stop (EC2).
	// +kubebuilder:validation:MaxLength=128
	// +optional
	EventTypeCode string `json:"eventTypeCode,omitempty"`
	// Subject identifies what the notice is about, if the cloud sends updates
	// of it, such as the ARN of an AWS Health event. Of several notices with
	// the same source, kind and subject, only the latest counts.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Subject string `json:"subject,omitempty"`
	// LifecycleHook is the invocation of a lifecycle hook that the notice is about, for an
	// AutoScalingTermination. If it has no name, only the group is known.
	// +optional
	LifecycleHook *LifecycleHookInvocation `json:"lifecycleHook,omitempty"`
	// Withdrawn says that the cloud has withdrawn the notice: the change was
	// cancelled or is over.
	// +optional
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Drill says that a person sent the notice as a test.
	// +optional
	Drill bool `json:"drill,omitempty"`
	// EndInstance says that the person asked to end the instance in the drill, as
	// Lifeboat would for a notice of AWS.
	// +optional
	EndInstance bool `json:"endInstance,omitempty"`
	// Description describes the notice in one sentence.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
}

// LifecycleHookInvocation is one invocation of a lifecycle hook of an Auto Scaling group.
type LifecycleHookInvocation struct {
	// Group is the name of the Auto Scaling group.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Group string `json:"group"`
	// Name is the name of the hook.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
	// Token identifies this invocation of the hook.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Token string `json:"token,omitempty"`
}

// DeadlineType says whether a deadline can move.
type DeadlineType string

const (
	// DeadlineHard is a deadline that cannot move, such as that of a spot
	// interruption.
	DeadlineHard DeadlineType = "Hard"
	// DeadlineEstimated is the estimated end of an instance whose operating
	// system is shutting down. It cannot move, but the instance may run longer.
	// Therefore no pod gets less than its own grace period because of it.
	DeadlineEstimated DeadlineType = "Estimated"
	// DeadlineSoft is a deadline that is planned for later, or a guess.
	DeadlineSoft DeadlineType = "Soft"
)

// Deadline is when an instance will stop.
type Deadline struct {
	// Time is the time of the deadline.
	// +required
	Time metav1.Time `json:"time"`
	// Type says whether the deadline can move: Hard and Estimated deadlines
	// cannot.
	// +kubebuilder:validation:Enum=Hard;Estimated;Soft
	// +required
	Type DeadlineType `json:"type"`
}
