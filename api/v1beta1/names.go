package v1beta1

// Condition types.
const (
	// ConditionAccepted is true when a decision was made (Interruption), when
	// the policy is in force (InterruptionPolicy), or when the notices are
	// recorded (NodeNotice).
	ConditionAccepted = "Accepted"
	// ConditionCordoned is true while the node is cordoned.
	ConditionCordoned = "Cordoned"
	// ConditionDrained is true when all pods that must move have left.
	ConditionDrained = "Drained"
	// ConditionReplaced is true when the replacement capacity is ready, or none
	// is needed. It is present only if the policy wants capacity before the
	// drain.
	ConditionReplaced = "Replaced"
	// ConditionApproved is true after a person has approved. It is present only
	// if approval is required.
	ConditionApproved = "Approved"
	// ConditionOnHold is true while a person holds the drain. It is present
	// only after a hold.
	ConditionOnHold = "OnHold"
	// ConditionPaused is true while a pause of the cluster or of the NodePool stops the
	// action. It is present only after a pause.
	ConditionPaused = "Paused"
	// ConditionWiringDegraded is true when another source reported a notice
	// that the queue should have delivered and did not.
	ConditionWiringDegraded = "WiringDegraded"
	// ConditionCorroborated is false while the instance, its node and what is said about
	// it do not agree, so that something irreversible waits. It is present only then.
	ConditionCorroborated = "Corroborated"
	// ConditionReady is computed from the others. It is true when nothing is
	// left to do.
	ConditionReady = "Ready"
)

// Reasons of conditions, timeline entries and Kubernetes Events.
const (
	ReasonNoticeReceived       = "NoticeReceived"
	ReasonWithdrawn            = "Withdrawn"
	ReasonReported             = "ReportedByAWS"
	ReasonMissingFromQueue     = "MissingFromQueue"
	ReasonDecided              = "Decided"
	ReasonWaiting              = "Waiting"
	ReasonMarkedAtRisk         = "MarkedAtRisk"
	ReasonCordoned             = "Cordoned"
	ReasonEvicted              = "Evicted"
	ReasonDeleted              = "Deleted"
	ReasonProtectionOverridden = "ProtectionOverridden"
	ReasonEvictionBlocked      = "EvictionBlocked"
	ReasonPodTerminated        = "PodTerminated"
	ReasonPodLost              = "PodLost"
	ReasonPodsRemaining        = "PodsRemaining"
	ReasonDrained              = "Drained"
	ReasonNodeRestored         = "NodeRestored"
	ReasonCompleted            = "Completed"
	ReasonNoticeHandled        = "NoticeHandled"
	ReasonReopened             = "Reopened"
	ReasonInvalid              = "Invalid"
	ReasonValid                = "Valid"

	// Reasons of the condition Accepted of a NodeNotice.
	ReasonRecorded             = "Recorded"
	ReasonInstanceMismatch     = "InstanceMismatch"
	ReasonInstanceClaimedTwice = "InstanceClaimedTwice"

	ReasonAwaitingApproval = "AwaitingApproval"
	ReasonApproved         = "Approved"
	ReasonOnHold           = "OnHold"
	ReasonReleased         = "Released"
	ReasonPaused           = "Paused"
	ReasonResumed          = "Resumed"
	ReasonQueued           = "Queued"
	ReasonPostponed        = "Postponed"
	ReasonHookStarted      = "HookStarted"
	ReasonHookSucceeded    = "HookSucceeded"
	ReasonHookFailed       = "HookFailed"
	ReasonSurged           = "Surged"
	ReasonSurgeReverted    = "SurgeReverted"
	ReasonTerminated       = "TerminationRequested"
	ReasonNotifyFailed     = "NotificationFailed"

	// ReasonNodeConflict: several Ready nodes state the same instance.
	ReasonNodeConflict = "NodeConflict"
	// ReasonContradicted: facts about the instance contradict each other.
	ReasonContradicted = "Contradicted"
	// ReasonUnconfirmed: a fact about the instance is missing.
	ReasonUnconfirmed = "Unconfirmed"

	ReasonReplacementOrdered  = "ReplacementOrdered"
	ReasonReplacementReady    = "ReplacementReady"
	ReasonReplacementFailed   = "ReplacementFailed"
	ReasonReplacementReleased = "ReplacementReleased"
	ReasonNotReplaced         = "NotReplaced"
	ReasonNodeClaimDeleted    = "NodeClaimDeleted"

	ReasonLifecycleHookPending    = "LifecycleHookPending"
	ReasonLifecycleActionSent     = "LifecycleActionSent"
	ReasonLifecycleHookCompleted  = "LifecycleHookCompleted"
	ReasonLifecycleHookNotManaged = "LifecycleHookNotManaged"
	ReasonNodeDeleted             = "NodeDeleted"
	ReasonDetached                = "Detached"
)

// Labels, annotations and taints that Lifeboat sets or reads, and names of its
// lifecycle hooks.
const (
	// TaintInterrupted keeps new pods off an interrupted node (NoSchedule), or
	// steers them to other nodes (PreferNoSchedule) if the node is only at
	// risk.
	TaintInterrupted = "lifeboat.dev/interrupted"
	// AnnotationOriginalState on a node records what Lifeboat changed on it. If the
	// node stays, Lifeboat restores exactly these values.
	AnnotationOriginalState = "lifeboat.dev/original-state"
	// AnnotationWebhookHosts is on a Secret. It lists the hosts, separated by commas,
	// to which webhooks may send the Secret's entries as headers (headersFrom).
	AnnotationWebhookHosts = "lifeboat.dev/webhook-hosts"
	// AnnotationDoNotDisrupt on a pod asks Lifeboat to leave the pod alone
	// while there is time. The value is "true", or a duration counted from the
	// pod's start.
	AnnotationDoNotDisrupt = "lifeboat.dev/do-not-disrupt"
	// AnnotationKarpenterDoNotDisrupt on a pod means the same. On a Node only the value
	// "true" counts: it holds voluntary drains (Karpenter documentation, "Disruption").
	AnnotationKarpenterDoNotDisrupt = "karpenter.sh/do-not-disrupt"
	// LabelSurged on a pod says that its successor started first. Lifeboat has
	// removed the pod from its ReplicaSet, whose name is the label's value. The
	// pod is evicted when the successor is Ready.
	LabelSurged = "lifeboat.dev/surged"
	// AnnotationSurgeOrigin on such a pod records, as JSON, the removed metadata.
	// Lifeboat restores it if the node stays.
	AnnotationSurgeOrigin = "lifeboat.dev/surge-origin"
	// LabelInterruption on a hook's Job names its Interruption.
	LabelInterruption = "lifeboat.dev/interruption"
	// LabelReplacesInstance on a NodeClaim, and on the Node that it becomes, names the
	// instance that it replaces. Lifeboat removes it when the pods have moved
	// there.
	LabelReplacesInstance = "lifeboat.dev/replaces-instance"
	// AnnotationInterruption on a NodeClaim names the Interruption that it was
	// created for. It stays after LabelReplaces was removed.
	AnnotationInterruption = "lifeboat.dev/interruption"
	// AnnotationGuardedUntil on a NodeClaim is the RFC 3339 time until which Karpenter
	// may not delete it for an interruption. The chart's admission policy reads it.
	AnnotationGuardedUntil = "lifeboat.dev/guarded-until"
	// TaintNotInService keeps pods off a node of an Auto Scaling group until
	// its instance is in service. Until the launch hook is answered, the group
	// can still terminate the instance. The kubelet registers with this taint.
	TaintNotInService = "lifeboat.dev/not-in-service"
	// LaunchHook and TerminateHook are the names of Lifeboat's lifecycle hooks.
	LaunchHook    = "lifeboat-launch"
	TerminateHook = "lifeboat-terminate"
	// LabelNodeGroup on a node names its NodeGroup.
	LabelNodeGroup = "lifeboat.dev/nodegroup"
	// LabelExcludeBalancers removes a node from external load balancers
	// (k8s.io/api/core/v1 LabelNodeExcludeBalancers).
	LabelExcludeBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"
)
