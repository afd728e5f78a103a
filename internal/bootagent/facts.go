package bootagent

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Facts are the input of a decision.
type Facts struct {
	// Instance is the id of this machine, and Boot the id of its boot.
	Instance, Boot string
	Target         Target
	Member         Membership
	Journal        Journal
	// Gate is set if the gate is open in this boot.
	Gate    bool
	Kubelet Kubelet
	Node    Node
	State   State
	Hooks   Hooks
	Talk    Talk
	// Stages are the stages of preparation, in their order.
	Stages []StageFact
	// Progress is when preparation or joining last made progress.
	Progress time.Time
	// Again is when a failed command of the machine may be retried, and Broken its error;
	// empty: none has failed.
	Again  time.Time
	Broken string
	Rules  Rules
}

// Rules are the settings for decisions.
type Rules struct {
	// AbsentFor is how long metadata may have no target before other sources are used.
	AbsentFor time.Duration
	// Answer is set if the agent completes hooks.
	Answer bool
	// Abandon is set if a launch whose preparation has failed is abandoned.
	Abandon bool
	// Patience bounds the heartbeats of one leg. Without progress for Stall there are no more
	// heartbeats.
	Patience, Stall time.Duration
	// Tries is the maximum number of tries of a stage.
	Tries int
	// Parallel is how many images are pulled at the same time.
	Parallel int
}

// Target is the machine's target in instance metadata. A value, an empty answer and no answer
// are three different cases.
type Target struct {
	// Read is set if metadata has answered since the machine woke up.
	Read bool
	// Value is the last answer; empty: there was no target.
	Value string
	// At is when it was read; Since, from when on it was the same.
	At, Since time.Time
	// Trouble is the error of the last read; empty: it succeeded.
	Trouble string
}

// Membership is whether the machine is in a group.
type Membership string

// The values of Membership.
const (
	MemberUnknown Membership = ""
	MemberIn      Membership = "In"
	MemberOfNone  Membership = "None"
)

// Kubelet is whether the kubelet runs.
type Kubelet string

// The values of Kubelet.
const (
	KubeletUnknown Kubelet = ""
	KubeletOff     Kubelet = "Off"
	KubeletRuns    Kubelet = "Runs"
)

// Node is the machine's node as last read.
type Node struct {
	// At is when; zero: not since the machine woke up.
	At time.Time
	// Trouble is the error of the read; empty: it succeeded.
	Trouble string
	// Name is the name of the node; empty: it does not exist.
	Name string
	// Ready is the kubelet's report at Heartbeat. Deleting is set if the node is being deleted.
	Ready, Deleting bool
	Heartbeat       time.Time
	// Healthz is set if the API server is unreachable, and Ready is the result of the kubelet's
	// own health check.
	Healthz bool
}

// readySince reports whether the kubelet has reported since a time that the node is Ready.
// Kubernetes stores times in whole seconds.
func (n Node) readySince(at time.Time) bool {
	if n.At.IsZero() || n.Trouble != "" || !n.Ready || n.Deleting {
		return false
	}
	return n.Healthz || n.Name != "" && !n.Heartbeat.Before(at.Truncate(time.Second))
}

// isNodeGone reports whether the node of this life existed and is gone.
func (f Facts) isNodeGone() bool {
	n := f.Node
	return f.Journal.Node != "" && !n.At.IsZero() && n.Trouble == "" && !n.Healthz && n.Name == ""
}

// State is the machine's state as Auto Scaling last returned it.
type State struct {
	// At is when; zero: not in this leg.
	At time.Time
	// Group is its group; empty: none.
	Group string
	// Value is its lifecycle state as Auto Scaling writes it, Position the parsed state.
	Value    string
	Position lifecycle.Position
}

// past reports whether no hook holds a machine on its way into the pool any more.
func (s State) past() bool {
	return !s.At.IsZero() && (s.Position.Phase == lifecycle.Warm ||
		s.Position == lifecycle.Position{Phase: lifecycle.Warming, Step: lifecycle.Proceeding})
}

// Hooks are the lifecycle hooks of the machine's group.
type Hooks struct {
	// At is when they were read; zero: not yet.
	At  time.Time
	All []lifecycle.Hook
}

// Talk is the state of the communication with Auto Scaling.
type Talk struct {
	// Due is when the next call may be made; Look, when the state may be read again.
	Due, Look time.Time
	// Tries counts calls since the state last changed, for the backoff.
	Tries int
	// Calls has the calls for each hook in this leg.
	Calls map[string]lifecycle.CallRecord
	// Denied is the missing permission; empty: none is known.
	Denied string
	// Trouble is the error of the last call; empty: it succeeded.
	Trouble string
}

// problem is the permission that is missing, or the error of the last call, or "".
func (t Talk) problem() string {
	if t.Denied != "" {
		return t.Denied
	}
	return t.Trouble
}

// StageFact is the progress of a stage of preparation.
type StageFact struct {
	Key string
	// Image is set for the pull of an image, which may fail. Commands must succeed.
	Image         bool
	Done, Running bool
	Tries         int
	// Again is when it may be retried.
	Again time.Time
	// Trouble is the error of the last try.
	Trouble string
}

// Do is an action.
type Do string

// The actions.
const (
	// DoWait: nothing, until something changes or for a time.
	DoWait Do = "wait"
	// DoAsk: read metadata.
	DoAsk Do = "ask again"
	// DoCorroborate: find out whether the machine is in a group.
	DoCorroborate Do = "corroborate"
	// DoBegin: begin the leg with Goal.
	DoBegin Do = "begin"
	// DoPrepare: start the stage with the name Stage.
	DoPrepare Do = "prepare"
	// DoOpen and DoClose: open the gate and start the kubelet, and the reverse.
	DoOpen  Do = "open the gate"
	DoClose Do = "close the gate"
	// DoWipe: remove the state of one life in service.
	DoWipe Do = "wipe"
	// DoDescribe: read the machine's state from Auto Scaling.
	DoDescribe Do = "describe"
	// DoHooks: read the hooks of the group from Auto Scaling.
	DoHooks Do = "ask for hooks"
	// DoHeartbeat: send heartbeats for the hooks that hold the machine.
	DoHeartbeat Do = "heartbeat"
	// DoComplete: complete Hooks with Result.
	DoComplete Do = "complete"
	// DoSettle: record that no hook holds the machine any more.
	DoSettle Do = "settle"
	// DoStop: do nothing more; the machine is terminated.
	DoStop Do = "stop"
)

// Step is the next action, and why.
type Step struct {
	Do Do
	// Reason is a sentence for people.
	Reason string
	// At is when to decide again at the latest, for DoWait and DoStop; zero: when something has
	// changed.
	At time.Time

	Goal   Goal         // of DoBegin
	Stage  string       // of DoPrepare
	Hooks  []string     // of DoHeartbeat and DoComplete
	Result cloud.Result // of DoComplete
}
