package v1beta1

// PodReason says in one word why a pod of an interrupted node is in its state. Programs read it; the message
// says the same to people.
type PodReason string

// The reasons of pods that are on the node.
const (
	// PodReasonNothingHolds: it can go.
	PodReasonNothingHolds PodReason = "NothingHolds"
	// PodReasonGate: all pods of the node wait, for a replacement, a hook, a person or load balancers.
	PodReasonGate PodReason = "Gate"
	// PodReasonDisruptionBudget: the Eviction API would refuse it now.
	PodReasonDisruptionBudget PodReason = "DisruptionBudget"
	// PodReasonDoNotDisrupt: its annotation holds it.
	PodReasonDoNotDisrupt PodReason = "DoNotDisrupt"
	// PodReasonOrder: pods of a lower rank leave first.
	PodReasonOrder PodReason = "Order"
	// PodReasonGang: its gang leaves together.
	PodReasonGang PodReason = "Gang"
	// PodReasonSuccessorFirst: a successor is started before it leaves.
	PodReasonSuccessorFirst PodReason = "SuccessorFirst"
	// PodReasonSuccessorNotReady: its successor was started, and is not ready yet.
	PodReasonSuccessorNotReady PodReason = "SuccessorNotReady"
	// PodReasonLastCall: its last call has come, and something would still hold it.
	PodReasonLastCall PodReason = "LastCall"
	// PodReasonReturned: it came back to the cordoned node.
	PodReasonReturned PodReason = "Returned"
	// PodReasonTerminating: it was asked to stop before.
	PodReasonTerminating PodReason = "Terminating"
	// PodReasonGraceCut: it was asked to stop before, with a grace that outlasts the deadline.
	PodReasonGraceCut PodReason = "GraceCut"
	// PodReasonEvictionRefused: the API server refused its eviction, because of a budget or a webhook.
	PodReasonEvictionRefused PodReason = "EvictionRefused"
	// PodReasonEvictionTimedOut: the API server did not answer the request in time.
	PodReasonEvictionTimedOut PodReason = "EvictionTimedOut"
	// PodReasonEvictionFailed: the request was not sent, or did not get through.
	PodReasonEvictionFailed PodReason = "EvictionFailed"
)

// The reasons of pods that have left, or are lost.
const (
	// PodReasonDeparted: it left within its grace.
	PodReasonDeparted PodReason = "Departed"
	// PodReasonDepartureUnseen: it went while no controller ran, so that the time is unknown.
	PodReasonDepartureUnseen PodReason = "DepartureUnseen"
	// PodReasonInstanceGone: the instance went before the pod, and no kubelet can stop it.
	PodReasonInstanceGone PodReason = "InstanceGone"
	// PodReasonDeadlinePassed: it was still there when the deadline passed.
	PodReasonDeadlinePassed PodReason = "DeadlinePassed"
)

// The reasons of pods that stay. The record does not list them; `lifeboat plan` does.
const (
	// PodReasonDaemonSet: its controller would put it back.
	PodReasonDaemonSet PodReason = "DaemonSet"
	// PodReasonStatic: the kubelet runs it from a file.
	PodReasonStatic PodReason = "Static"
	// PodReasonFinished: its containers have exited.
	PodReasonFinished PodReason = "Finished"
	// PodReasonKeptByPolicy: the policy leaves it where it is.
	PodReasonKeptByPolicy PodReason = "KeptByPolicy"
)
