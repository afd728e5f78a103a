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
	// ConditionRequestsAccepted is false while the API server refuses something that
	// Lifeboat writes for the Interruption, such as the cordon, or EC2 the
	// termination of the instance. It is present only after a refusal.
	ConditionRequestsAccepted = "RequestsAccepted"
	// ConditionOutOfService is true while the Node has the out-of-service taint from Lifeboat,
	// because EC2 says that its instance is stopped or terminated. It is present only after that.
	ConditionOutOfService = "OutOfService"
	// ConditionReady is computed from the others. It is true when nothing is
	// left to do.
	ConditionReady = "Ready"
)

// Reasons of conditions, timeline entries and Kubernetes Events.
const (
	// ReasonNoticeReceived: a notice was added to the Interruption.
	ReasonNoticeReceived = "NoticeReceived"
	// ReasonWithdrawn: the source withdrew a notice.
	ReasonWithdrawn = "Withdrawn"
	// ReasonReported: AWS reports something that touches no node of the cluster, such as a volume.
	ReasonReported = "ReportedByAWS"
	// ReasonMissingFromQueue: the queue did not deliver a notice that another source brought.
	ReasonMissingFromQueue = "MissingFromQueue"
	// ReasonNoProviderID: no notice can reach a node on EC2 that has no spec.providerID.
	ReasonNoProviderID = "NoProviderID"
	// ReasonWiringRepaired: what kept the queue from delivering that notice is corrected.
	ReasonWiringRepaired = "WiringRepaired"
	// ReasonDecided: policy made a decision, or another one.
	ReasonDecided = "Decided"
	// ReasonWaiting: the interruption waits; the message says for what.
	ReasonWaiting = "Waiting"
	// ReasonMarkedAtRisk: the scheduler prefers other nodes; the pods stay.
	ReasonMarkedAtRisk = "MarkedAtRisk"
	// ReasonCordoned: the node takes no new pods.
	ReasonCordoned = "Cordoned"
	// ReasonEvicted: pods were asked to leave by the Eviction API.
	ReasonEvicted = "Evicted"
	// ReasonDeleted: pods were deleted, because an eviction was refused until their last call.
	ReasonDeleted = "Deleted"
	// ReasonProtectionOverridden: what held a pod was overridden at its last call.
	ReasonProtectionOverridden = "ProtectionOverridden"
	// ReasonEvictionBlocked: something holds a pod; the message names it.
	ReasonEvictionBlocked = "EvictionBlocked"
	// ReasonPodTerminated: pods have left; the message has the grace that they used.
	ReasonPodTerminated = "PodTerminated"
	// ReasonPodLost: a pod was on the node when its instance stopped.
	ReasonPodLost = "PodLost"
	// ReasonPodsRemaining: pods must still leave the node.
	ReasonPodsRemaining = "PodsRemaining"
	// ReasonDrained: no pod is left that had to leave.
	ReasonDrained = "Drained"
	// ReasonOutOfService: EC2 says that the instance is stopped or terminated, and the Node got the
	// taint that has Kubernetes detach its volumes at once.
	ReasonOutOfService = "OutOfService"
	// ReasonBackInService: the out-of-service taint was removed.
	ReasonBackInService = "BackInService"
	// ReasonNodeRestored: the node is as it was before.
	ReasonNodeRestored = "NodeRestored"
	// ReasonCompleted: nothing is left to do.
	ReasonCompleted = "Completed"
	// ReasonNoticeHandled: one notice is dealt with, and another one of the same instance remains.
	ReasonNoticeHandled = "NoticeHandled"
	// ReasonReopened: a notice came after the earlier interruption was over.
	ReasonReopened = "Reopened"
	// ReasonInvalid: the policy has an error.
	ReasonInvalid = "Invalid"
	// ReasonValid: the policy is in force.
	ReasonValid = "Valid"

	// ReasonRecorded: the notices of the NodeNotice are in the Interruption.
	ReasonRecorded = "Recorded"
	// ReasonInstanceMismatch: the agent reports another instance than that of its Node.
	ReasonInstanceMismatch = "InstanceMismatch"
	// ReasonInstanceClaimedTwice: two Nodes state the same instance.
	ReasonInstanceClaimedTwice = "InstanceClaimedTwice"

	// ReasonAwaitingApproval: a person must approve first.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonApproved: a person approved.
	ReasonApproved = "Approved"
	// ReasonOnHold: a person holds the drain.
	ReasonOnHold = "OnHold"
	// ReasonReleased: the hold has ended.
	ReasonReleased = "Released"
	// ReasonPaused: a pause stops the action.
	ReasonPaused = "Paused"
	// ReasonResumed: the pause has ended.
	ReasonResumed = "Resumed"
	// ReasonQueued: the policy's budget is used up by other nodes.
	ReasonQueued = "Queued"
	// ReasonPostponed: the deadline moved after the drain had begun; the node is restored.
	ReasonPostponed = "Postponed"
	// ReasonDeregistered: load balancers send no new connections to the instance.
	ReasonDeregistered = "Deregistered"
	// ReasonDeregistrationUnknown: AWS did not say whether load balancers still send connections to
	// the instance, so pods do not wait any more.
	ReasonDeregistrationUnknown = "DeregistrationUnknown"
	// ReasonDeregistrationTimedOut: load balancers may still send connections to the instance, but
	// the policy's time for that is over.
	ReasonDeregistrationTimedOut = "DeregistrationTimedOut"
	// ReasonHookStarted: a hook of the policy began.
	ReasonHookStarted = "HookStarted"
	// ReasonHookSucceeded: a hook of the policy succeeded.
	ReasonHookSucceeded = "HookSucceeded"
	// ReasonHookFailed: a try of a hook failed.
	ReasonHookFailed = "HookFailed"
	// ReasonSurged: pods left their ReplicaSets, so that their successors start.
	ReasonSurged = "Surged"
	// ReasonSurgeReverted: pods belong to their ReplicaSets again.
	ReasonSurgeReverted = "SurgeReverted"
	// ReasonTerminated: EC2 was asked to terminate the instance.
	ReasonTerminated = "TerminationRequested"
	// ReasonNotifyFailed: a notification was not delivered.
	ReasonNotifyFailed = "NotificationFailed"

	// ReasonNodeConflict: several Ready nodes state the same instance.
	ReasonNodeConflict = "NodeConflict"
	// ReasonContradicted: facts about the instance contradict each other.
	ReasonContradicted = "Contradicted"
	// ReasonUnconfirmed: a fact about the instance is missing.
	ReasonUnconfirmed = "Unconfirmed"

	// ReasonNodeWriteRefused: the API server refuses a change of the node, such as
	// the cordon.
	ReasonNodeWriteRefused = "NodeWriteRefused"
	// ReasonPodWriteRefused: the API server refuses to change or delete a pod.
	ReasonPodWriteRefused = "PodWriteRefused"
	// ReasonStatusWriteRefused: the API server refuses the status of the
	// Interruption.
	ReasonStatusWriteRefused = "StatusWriteRefused"
	// ReasonNodeClaimWriteRefused: the API server refuses to create, change or
	// delete a NodeClaim.
	ReasonNodeClaimWriteRefused = "NodeClaimWriteRefused"
	// ReasonJobWriteRefused: the API server refuses the Job of a hook.
	ReasonJobWriteRefused = "JobWriteRefused"
	// ReasonTerminationRefused: EC2 refuses to terminate the instance.
	ReasonTerminationRefused = "TerminationRefused"
	// ReasonRequestsAccepted: what was refused before is accepted.
	ReasonRequestsAccepted = "RequestsAccepted"

	// ReasonReplacementOrdered: a NodeClaim for the replacement exists.
	ReasonReplacementOrdered = "ReplacementOrdered"
	// ReasonReplacementReady: the replacement's node is Ready.
	ReasonReplacementReady = "ReplacementReady"
	// ReasonReplacementFailed: a try to start a replacement failed.
	ReasonReplacementFailed = "ReplacementFailed"
	// ReasonReplacementReleased: the replacement is a node like any other.
	ReasonReplacementReleased = "ReplacementReleased"
	// ReasonNotReplaced: there is no replacement; the message says why.
	ReasonNotReplaced = "NotReplaced"
	// ReasonNodeClaimDeleted: the node is handed over to Karpenter.
	ReasonNodeClaimDeleted = "NodeClaimDeleted"

	// ReasonLifecycleHookPending: a lifecycle hook of the group holds the instance.
	ReasonLifecycleHookPending = "LifecycleHookPending"
	// ReasonLifecycleActionSent: Lifeboat answered a lifecycle hook.
	ReasonLifecycleActionSent = "LifecycleActionSent"
	// ReasonLifecycleHookCompleted: the group has accepted the answer.
	ReasonLifecycleHookCompleted = "LifecycleHookCompleted"
	// ReasonLifecycleHookNotManaged: a hook holds the instance that Lifeboat may not answer.
	ReasonLifecycleHookNotManaged = "LifecycleHookNotManaged"
	// ReasonNodeDeleted: the Node was deleted, because its instance returns to the warm pool.
	ReasonNodeDeleted = "NodeDeleted"
	// ReasonDetached: the instance was taken out of its group, which launches another.
	ReasonDetached = "Detached"
)

// Labels, annotations and taints that Lifeboat sets or reads, and names of its
// lifecycle hooks.
const (
	// TaintInterrupted steers new pods away from a node at risk (PreferNoSchedule). An
	// interrupted node is cordoned and has no taint of Lifeboat, so that DaemonSets run
	// on it.
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
	// AnnotationAcknowledged on an Interruption is the RFC 3339 time at which a person acknowledged
	// what it needed. `lifeboat status` and the alert for blocked drains leave that out.
	AnnotationAcknowledged = "lifeboat.dev/acknowledged"
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
	// AnnotationOutOfService on a Node says that Lifeboat set the taint
	// node.kubernetes.io/out-of-service. Its value is the instance that EC2 confirmed to be off.
	AnnotationOutOfService = "lifeboat.dev/out-of-service"
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
