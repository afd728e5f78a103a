package scenario

import "time"

// Statement types of Auto Scaling groups.
type (
	// GroupStatement creates an Auto Scaling group, which launches its desired capacity
	// immediately.
	GroupStatement struct {
		Name              string
		Min, Max, Desired int
		Type              string
		Zones             []string // none: all
		Spot, Rebalance   bool     // Rebalance: it replaces instances at risk
		Labels, Taints    string   // as in NodeStatement
		// Pool is the state of warm instances; empty: there is no warm pool. Warm is their number;
		// zero: as many as are missing to Max. Reuse returns instances to the pool when the group
		// shrinks.
		Pool  PoolState
		Warm  int
		Reuse bool
		// Hooks are Lifeboat's lifecycle hooks of the group, which exist before its first instance.
		// The times are their heartbeat timeouts.
		Hooks                 HookSet
		LaunchTime, LeaveTime time.Duration
		// Boot is the time from power to an instance's first program, Prepare the duration of the
		// one-time preparation of its disk before its kubelet runs.
		Boot, Prepare time.Duration
		Agent         BootAgent
		// Declared leaves the group itself to a NodeGroup: only its launch template is made.
		Declared bool
	}
	// ScaleStatement changes the desired capacity of a group.
	ScaleStatement struct {
		Group string
		To    int
	}
	// RefreshStatement starts an instance refresh.
	RefreshStatement struct{ Group string }
	// BalanceStatement makes a group balance its zones, as it does after a zone was short of
	// capacity.
	BalanceStatement struct{ Group string }
	// DetachStatement takes an instance out of its group, which launches another.
	DetachStatement struct{ Node string }
	// TerminateStatement ends an instance.
	TerminateStatement struct {
		Node string
		By   TerminateBy
	}
)

// PoolState is the state of warm instances.
type PoolState string

// The states of a warm pool.
const (
	PoolStopped    PoolState = "stopped"
	PoolRunning    PoolState = "running"
	PoolHibernated PoolState = "hibernated"
)

// HookSet is a set of lifecycle hooks.
type HookSet string

// The sets.
const (
	HooksBoth      HookSet = "both"
	HooksLaunch    HookSet = "launch"
	HooksTerminate HookSet = "terminate"
	HooksNone      HookSet = "none"
)

// BootAgent is whether Lifeboat's agent starts the kubelets of a group.
type BootAgent string

// The agents.
const (
	AgentAnswers BootAgent = "answers"
	// AgentSilent starts the kubelet at the right time, and answers no hook, because it lacks the
	// permission.
	AgentSilent BootAgent = "silent"
	// AgentNone is an image without it: the kubelet starts at boot.
	AgentNone BootAgent = "none"
)

// TerminateBy is who ends an instance.
type TerminateBy string

// The callers.
const (
	// ByEC2 is a call to EC2, past the group and its hooks.
	ByEC2 TerminateBy = "ec2"
	// ByGroup is a call to the group, which launches no replacement.
	ByGroup TerminateBy = "group"
	// ByAutoscaler is the cluster-autoscaler: its taint, then as ByGroup.
	ByAutoscaler TerminateBy = "autoscaler"
)
