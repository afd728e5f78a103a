package v1alpha1

// Condition types.
const (
	// ConditionAccepted is true once a decision was made (Interruption), or
	// the policy is in force (InterruptionPolicy).
	ConditionAccepted = "Accepted"
	// ConditionCordoned is true while new pods are kept off the node.
	ConditionCordoned = "Cordoned"
	// ConditionDrained is true once no pod is left that had to move.
	ConditionDrained = "Drained"
	// ConditionReplaced is true once the capacity is there that policy wants
	// before pods are moved, or none is needed; it is there only where policy
	// wants that.
	ConditionReplaced = "Replaced"
	// ConditionApproved is true once a person has agreed to what policy wants
	// approved; it is there only where approval is required.
	ConditionApproved = "Approved"
	// ConditionOnHold is true while a person holds the drain; it is there only
	// where somebody did.
	ConditionOnHold = "OnHold"
	// ConditionWiringDegraded is true where another source brought what the
	// queue should have brought too, and did not.
	ConditionWiringDegraded = "WiringDegraded"
	// ConditionReady is computed from the others: true once nothing is left
	// to do.
	ConditionReady = "Ready"
)

// Reasons of conditions, timeline entries and Kubernetes Events.
const (
	ReasonNoticeReceived = "NoticeReceived"
	ReasonWithdrawn      = "Withdrawn"
	ReasonReported       = "ReportedByAWS"
	ReasonNotHeard       = "NotHeardFromQueue"
	ReasonDecided        = "Decided"
	ReasonWaiting        = "Waiting"
	ReasonMarkedAtRisk   = "MarkedAtRisk"
	ReasonCordoned       = "Cordoned"
	ReasonEvicted        = "Evicted"
	ReasonDeleted        = "Deleted"
	ReasonOverridden     = "Overridden"
	ReasonHeld           = "Held"
	ReasonPodGone        = "PodGone"
	ReasonPodLost        = "PodLost"
	ReasonPodsLeft       = "PodsLeft"
	ReasonDrained        = "Drained"
	ReasonPutBack        = "PutBack"
	ReasonCompleted      = "Completed"
	ReasonAnswered       = "Answered"
	ReasonReopened       = "Reopened"
	ReasonInvalid        = "Invalid"
	ReasonValid          = "Valid"

	ReasonAwaitingApproval = "AwaitingApproval"
	ReasonApproved         = "Approved"
	ReasonOnHold           = "OnHold"
	ReasonReleased         = "Released"
	ReasonQueued           = "Queued"
	ReasonPostponed        = "Postponed"
	ReasonHookStarted      = "HookStarted"
	ReasonHookSucceeded    = "HookSucceeded"
	ReasonHookFailed       = "HookFailed"
	ReasonSurged           = "Surged"
	ReasonSurgeUndone      = "SurgeUndone"
	ReasonTerminated       = "TerminationRequested"
	ReasonNotifyFailed     = "NotificationFailed"

	ReasonReplacementOrdered  = "ReplacementOrdered"
	ReasonReplacementReady    = "ReplacementReady"
	ReasonReplacementFailed   = "ReplacementFailed"
	ReasonReplacementReleased = "ReplacementReleased"
	ReasonNotReplaced         = "NotReplaced"
	ReasonHandedOver          = "HandedOver"

	ReasonHookHolds    = "LifecycleHookHolds"
	ReasonHookAnswered = "LifecycleHookAnswered"
	ReasonHookPassed   = "LifecycleHookPassed"
	ReasonHookOpen     = "LifecycleHookUnanswered"
	ReasonNodeDeleted  = "NodeDeleted"
	ReasonDetached     = "Detached"
)

// What Lifeboat puts on nodes and reads from pods.
const (
	// TaintInterrupted keeps new pods off a doomed node (NoSchedule) or makes
	// them prefer others (PreferNoSchedule, for a node that is only at risk).
	TaintInterrupted = "lifeboat.dev/interrupted"
	// AnnotationBefore on a node records what Lifeboat changed on it, so that
	// a node that lives is put back exactly as it was.
	AnnotationBefore = "lifeboat.dev/before"
	// AnnotationDoNotDisrupt on a pod asks to leave it alone as long as there
	// is time: "true", or a duration counted from the pod's start.
	AnnotationDoNotDisrupt = "lifeboat.dev/do-not-disrupt"
	// LabelSurged on a pod says that its successor was started first: it was
	// taken from its ReplicaSet, whose name is the label's value, and leaves once
	// the successor is Ready.
	LabelSurged = "lifeboat.dev/surged"
	// AnnotationSurged on such a pod records, as JSON, what was taken from it,
	// so that it is given back if the node lives.
	AnnotationSurged = "lifeboat.dev/surged-from"
	// LabelInterruption on a Job tells which Interruption it is a hook of.
	LabelInterruption = "lifeboat.dev/interruption"
	// LabelReplaces on a NodeClaim, and from there on its Node, tells which
	// instance it is the replacement of, until its pods have landed.
	LabelReplaces = "lifeboat.dev/replaces"
	// AnnotationReplaces on a NodeClaim names the Interruption that it was made
	// for. It stays when the label goes.
	AnnotationReplaces = "lifeboat.dev/made-for"
	// TaintNotInService keeps pods off a node of an Auto Scaling group until the
	// group says that it is in service: a node whose launch hook is not answered
	// yet can still be taken away. Its kubelet registers with it.
	TaintNotInService = "lifeboat.dev/not-in-service"
	// LaunchHook and TerminateHook are what Lifeboat's lifecycle hooks are called.
	LaunchHook    = "lifeboat-launch"
	TerminateHook = "lifeboat-terminate"
	// LabelNodeGroup on a node names its NodeGroup.
	LabelNodeGroup = "lifeboat.dev/nodegroup"
	// LabelExcludeBalancers takes a node out of external load balancers
	// (k8s.io/api/core/v1 LabelNodeExcludeBalancers).
	LabelExcludeBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"
)
