package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// hibernate, reboot, maintain where it only loses network or power for a
	// moment, or return where it goes back to the warm pool of its group.
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
	// Hook is the firing of a lifecycle hook that the notice is about, for an
	// AutoScalingTermination; without a name, only the group is known.
	// +optional
	Hook *HookFiring `json:"hook,omitempty"`
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

// HookFiring is one firing of a lifecycle hook of an Auto Scaling group.
type HookFiring struct {
	// Group is the Auto Scaling group.
	// +kubebuilder:validation:MaxLength=255
	Group string `json:"group"`
	// Name is the hook's.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
	// Token is what names this firing and no other.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Token string `json:"token,omitempty"`
}

// DeadlineType says whether a deadline can move.
type DeadlineType string

const (
	// DeadlineHard is a deadline that nobody can move, as of a spot reclaim.
	DeadlineHard DeadlineType = "Hard"
	// DeadlineEstimated is the estimated end of an instance whose operating system
	// is shutting down. Nobody can move it, but the instance may run for longer, so
	// no pod gets less than its own grace period because of it.
	DeadlineEstimated DeadlineType = "Estimated"
	// DeadlineSoft is a deadline that is planned for later, or that is a guess.
	DeadlineSoft DeadlineType = "Soft"
)

// Deadline is when an instance will be gone.
type Deadline struct {
	// Time is the moment itself.
	Time metav1.Time `json:"time"`
	// Type says whether it can move: Hard and Estimated deadlines cannot.
	// +kubebuilder:validation:Enum=Hard;Estimated;Soft
	Type DeadlineType `json:"type"`
}
