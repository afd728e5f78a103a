package boot

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Facts are all that is known at one moment.
type Facts struct {
	// Instance is the id of this machine, Boot that of its boot.
	Instance, Boot string
	Target         Target
	Member         Membership
	Journal        Journal
	// Gate tells whether the gate is open, in this boot.
	Gate    bool
	Kubelet Kubelet
	Node    Node
	State   State
	Hooks   Hooks
	Talk    Talk
	// Stages are the stages of preparation, in their order.
	Stages []StageFact
	// Progress is when preparation or joining last came a step further.
	Progress time.Time
	// Again is when a command of the machine that failed may be run again, and Broken
	// how it failed; empty: none has.
	Again  time.Time
	Broken string
	Rules  Rules
}

// Rules are the settings that decisions go by.
type Rules struct {
	// AbsentFor is for how long metadata may say nothing before others are asked.
	AbsentFor time.Duration
	// Answer tells whether hooks are answered from here.
	Answer bool
	// Abandon tells whether a launch is abandoned whose preparation has failed.
	Abandon bool
	// Patience bounds the heartbeats of one way; Stall is after what time without
	// progress there are none.
	Patience, Stall time.Duration
	// Tries is after how many a stage has failed for good.
	Tries int
	// Parallel is how many images are pulled at once.
	Parallel int
}

// Target is what instance metadata says of where the machine is going. Value, nothing
// and no answer are three different things.
type Target struct {
	// Read tells whether metadata has answered since the machine woke.
	Read bool
	// Value is the last answer; empty: there was nothing.
	Value string
	// At is when it was given; Since, from when on it was the same.
	At, Since time.Time
	// Trouble says why the last question was not answered; empty: it was.
	Trouble string
}

// Membership tells whether the machine is in a group.
type Membership string

// The three of them.
const (
	MemberUnknown Membership = ""
	MemberIn      Membership = "In"
	MemberOfNone  Membership = "None"
)

// Kubelet tells whether the kubelet runs.
type Kubelet string

// The three of them.
const (
	KubeletUnknown Kubelet = ""
	KubeletOff     Kubelet = "Off"
	KubeletRuns    Kubelet = "Runs"
)

// Node is what was last read of the machine's node.
type Node struct {
	// At is when; zero: not since the machine woke.
	At time.Time
	// Trouble says why it could not be read; empty: it could.
	Trouble string
	// Name is the name under which it exists; empty: it does not.
	Name string
	// Ready as the kubelet says, at Heartbeat. Deleting: somebody deletes it.
	Ready, Deleting bool
	Heartbeat       time.Time
	// Healthz tells that there is no way to the API server, and that Ready is what
	// the kubelet's own health check says.
	Healthz bool
}

// readySince tells whether the kubelet has said that the node is ready since a moment.
// Kubernetes writes times in whole seconds.
func (n Node) readySince(at time.Time) bool {
	if n.At.IsZero() || n.Trouble != "" || !n.Ready || n.Deleting {
		return false
	}
	return n.Healthz || n.Name != "" && !n.Heartbeat.Before(at.Truncate(time.Second))
}

// nodeGone tells whether the node of this life was there, and is not any more.
func (f Facts) nodeGone() bool {
	n := f.Node
	return f.Journal.Node != "" && !n.At.IsZero() && n.Trouble == "" && !n.Healthz && n.Name == ""
}

// State is what Auto Scaling last said of the machine.
type State struct {
	// At is when; zero: not on this leg.
	At time.Time
	// Group is its group; empty: it was in none.
	Group string
	// Value is its lifecycle state as Auto Scaling writes it, Position what it means.
	Value    string
	Position lifecycle.Position
}

// past tells whether nothing holds a machine any more that goes into the pool.
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

// Talk is how the conversation with Auto Scaling goes.
type Talk struct {
	// Due is when the next call may be made; Look, when the state may be asked for
	// again.
	Due, Look time.Time
	// Tries counts calls since the state last changed, for the time between them.
	Tries int
	// Told is what each hook was told on this leg.
	Told map[string]lifecycle.Told
	// Denied says what is not permitted; empty: nothing is known to be.
	Denied string
	// Trouble says what the last call failed with; empty: it did not.
	Trouble string
}

// said is what is amiss with the conversation; empty: nothing.
func (t Talk) said() string {
	if t.Denied != "" {
		return t.Denied
	}
	return t.Trouble
}

// StageFact is a stage of preparation as it stands.
type StageFact struct {
	Key string
	// Image tells the pull of an image, which may fail, from a command, which may not.
	Image         bool
	Done, Running bool
	Tries         int
	// Again is when it may be tried again.
	Again time.Time
	// Trouble is how the last try failed.
	Trouble string
}

// Do is a thing to do.
type Do string

// All there is to do.
const (
	// DoWait: nothing, until something changes or it is time.
	DoWait Do = "wait"
	// DoAsk: ask metadata.
	DoAsk Do = "ask again"
	// DoCorroborate: find out whether the machine is in a group.
	DoCorroborate Do = "corroborate"
	// DoBegin: begin the leg that Goal names.
	DoBegin Do = "begin"
	// DoPrepare: start the stage that Stage names.
	DoPrepare Do = "prepare"
	// DoOpen and DoClose: open the gate and start the kubelet, and the reverse.
	DoOpen  Do = "open the gate"
	DoClose Do = "close the gate"
	// DoWipe: remove what belongs to one life in service.
	DoWipe Do = "wipe"
	// DoDescribe: ask Auto Scaling for the machine's state.
	DoDescribe Do = "describe"
	// DoHooks: ask Auto Scaling for the hooks of the group.
	DoHooks Do = "ask for hooks"
	// DoHeartbeat: extend what holds the machine.
	DoHeartbeat Do = "heartbeat"
	// DoComplete: answer Hooks with Result.
	DoComplete Do = "complete"
	// DoSettle: write down that nothing is held any more.
	DoSettle Do = "settle"
	// DoStop: have no part in what comes; the machine goes away.
	DoStop Do = "stop"
)

// Step is what to do next, and why.
type Step struct {
	Do Do
	// Reason is a sentence for people.
	Reason string
	// At is when to decide again at the latest, for DoWait and DoStop; zero: when
	// something has changed.
	At time.Time

	Goal   Goal         // of DoBegin
	Stage  string       // of DoPrepare
	Hooks  []string     // of DoHeartbeat and DoComplete
	Result cloud.Result // of DoComplete
}
