package history

import (
	"slices"
	"time"
)

// History is what happens. Each element can be left out, so that a history can be made shorter.
type History struct {
	Seed      uint64
	Nodes     []Node
	Workloads []Workload
	Policies  []Policy
	// Events are in the order of time.
	Events []Event
}

// Node is an instance of EC2.
type Node struct {
	Name, Zone string
	Team       bool // it has the label that policies select
	// Launched: Karpenter launches it, for a pod of a workload that Spreads.
	Launched bool
	// Member: the history's Auto Scaling group launches it.
	Member bool
}

// WorkloadKind is the kind of a workload.
type WorkloadKind string

// The kinds of workloads.
const (
	Deployment  WorkloadKind = "Deployment"
	StatefulSet WorkloadKind = "StatefulSet"
	DaemonSet   WorkloadKind = "DaemonSet"
	Job         WorkloadKind = "Job"
	BarePod     WorkloadKind = "Pod"
)

// Workload is a set of equal pods.
type Workload struct {
	Name     string
	Kind     WorkloadKind
	Replicas int
	// Grace is what its pods may take to stop, Stop what they take, and Start until they are Ready.
	Grace, Stop, Start int // seconds
	// Budget is the limit of its PodDisruptionBudget, such as "maxUnavailable: 1"; empty: it has none.
	Budget       string
	DoNotDisrupt bool
	// Volume: each pod of a StatefulSet has a volume.
	Volume bool
	// Run is how long the pods of a Job run, in seconds. Indexed: each has an index of its own.
	Run     int
	Indexed bool
	// Spreads: each pod needs a node of Karpenter of its own. Shares: the pods share these nodes.
	Spreads, Shares bool
}

// Policy is an InterruptionPolicy for the nodes of the team.
type Policy struct {
	Name, Kind, Action string
	// Evict is true if the pods are evicted; by default they are surged.
	Evict bool
	// Pool: it is for Karpenter's nodes instead. First: their replacements start before pods leave.
	Pool, First bool
}

// EventKind is what happens.
type EventKind string

// The kinds of events.
const (
	Spot      EventKind = "spot"
	Rebalance EventKind = "rebalance"
	Scheduled EventKind = "scheduled"
	Cancel    EventKind = "cancel" // AWS cancels what it has scheduled
	Leave     EventKind = "leave"  // the group terminates a member, with its lifecycle hook
	Fault     EventKind = "fault"
)

// Event is one event of a history. At counts from the first notice, and may be below zero for faults.
type Event struct {
	At    time.Duration
	Kind  EventKind
	Nodes []string
	// Notice is how long before a spot instance ends the warning comes.
	Notice time.Duration
	// Fault is its name, For how long it lasts, and Seed what it chooses.
	Fault string
	For   time.Duration
	Seed  uint64
}

// interrupts reports whether an event is a notice, which starts the clock of a scenario.
func (e Event) interrupts() bool {
	return e.Kind == Spot || e.Kind == Rebalance || e.Kind == Scheduled || e.Kind == Leave
}

// members are the nodes of the Auto Scaling group.
func (h History) members() []Node {
	return slices.DeleteFunc(slices.Clone(h.Nodes), func(n Node) bool { return !n.Member })
}

// launched is how many nodes Karpenter launches, and spread is for how many pods.
func (h History) launched() (n int) {
	for _, node := range h.Nodes {
		if node.Launched {
			n++
		}
	}
	return n
}

func (h History) spread() (n int) {
	for _, w := range h.Workloads {
		if w.Spreads {
			n += w.Replicas
		}
	}
	return n
}

// valid reports whether a history can be written as a scenario: it has a notice, each event is about
// nodes that exist, and only what is scheduled is cancelled.
func (h History) valid() bool {
	if !slices.ContainsFunc(h.Events, Event.interrupts) || h.launched() != h.spread() {
		return false
	}
	scheduled := map[string]bool{}
	for _, e := range h.Events {
		for _, name := range e.Nodes {
			known := slices.ContainsFunc(h.Nodes, func(n Node) bool { return n.Name == name })
			if !known || e.Kind == Cancel && !scheduled[name] {
				return false
			}
			scheduled[name] = e.Kind == Scheduled
		}
	}
	return true
}
