package scenario

import "time"

// MomentKind is a kind of moment.
type MomentKind string

// The kinds of moments, as observed on the machines and on the API server.
const (
	MomentStep      MomentKind = "step"       // a line of the script that took effect
	MomentJoined    MomentKind = "joined"     // a node came up
	MomentNotice    MomentKind = "notice"     // AWS warned of the end of an instance
	MomentRebalance MomentKind = "rebalance"  // AWS recommended rebalancing
	MomentRecorded  MomentKind = "recorded"   // Lifeboat recorded a notice
	MomentReported  MomentKind = "reported"   // Lifeboat reported a decision or a reason
	MomentCordoned  MomentKind = "cordoned"   // new pods are kept off a node
	MomentAtRisk    MomentKind = "at-risk"    // new pods prefer other nodes
	MomentOpen      MomentKind = "open"       // a node is as it was before
	MomentAsked     MomentKind = "asked"      // a pod was asked to stop
	MomentShortened MomentKind = "shortened"  // a stopping pod's grace was shortened
	MomentWhole     MomentKind = "whole"      // a pod ended with its stop work done
	MomentCut       MomentKind = "cut"        // a pod was killed in its stop work
	MomentLost      MomentKind = "lost"       // a pod was never asked, and its machine is gone
	MomentReady     MomentKind = "ready"      // a replacement pod is Ready
	MomentEmpty     MomentKind = "empty"      // the last pod that had to leave has ended
	MomentDeadline  MomentKind = "deadline"   // the deadline of the notice
	MomentPowerLost MomentKind = "power-lost" // a machine lost its power
	MomentJob       MomentKind = "job"        // a Job was made, completed or failed
	MomentNotReady  MomentKind = "not-ready"  // Kubernetes marked a node NotReady
	MomentGone      MomentKind = "gone"       // a Node was deleted
	MomentLaunched  MomentKind = "launched"   // Karpenter or a group launched an instance
	MomentClaim     MomentKind = "claim"      // a NodeClaim was made, is being deleted, or is deleted
	MomentProtected MomentKind = "protected"  // Karpenter may not disrupt a node
	MomentLifecycle MomentKind = "lifecycle"  // an instance changed its lifecycle state
	MomentAnswered  MomentKind = "answered"   // a lifecycle hook released an instance
	MomentMet       MomentKind = "met"        // an expectation holds
	MomentFailed    MomentKind = "failed"     // an expectation does not hold
)

// Moment is one line of the timeline.
type Moment struct {
	Time time.Time `json:"time"`
	// Seconds is the time since the notice; nil before it.
	Seconds *float64   `json:"seconds,omitempty"`
	Kind    MomentKind `json:"kind"`
	// Node is the script's name of the node.
	Node string `json:"node,omitempty"`
	// Pod is namespace/name.
	Pod string `json:"pod,omitempty"`
	// Text is a sentence for users.
	Text string `json:"text"`
}
