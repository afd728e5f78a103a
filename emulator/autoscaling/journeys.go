package autoscaling

import "strings"

// LifecycleState is where an instance stands in its group (Amazon EC2 Auto Scaling
// User Guide, Amazon EC2 Auto Scaling instance lifecycle).
type LifecycleState string

// The states in which an instance can stay, and those in which a journey begins. On the
// way, ":Wait" and ":Proceed" are added to the latter.
const (
	InService        LifecycleState = "InService"
	EnteringStandby  LifecycleState = "EnteringStandby"
	Standby          LifecycleState = "Standby"
	Detaching        LifecycleState = "Detaching"
	Detached         LifecycleState = "Detached"
	Terminated       LifecycleState = "Terminated"
	WarmedStopped    LifecycleState = "Warmed:Stopped"
	WarmedRunning    LifecycleState = "Warmed:Running"
	WarmedHibernated LifecycleState = "Warmed:Hibernated"
	WarmedTerminated LifecycleState = "Warmed:Terminated"

	Pending           LifecycleState = "Pending"
	Terminating       LifecycleState = "Terminating"
	WarmedPending     LifecycleState = "Warmed:Pending"
	WarmedTerminating LifecycleState = "Warmed:Terminating"
)

// wait is the state in which hooks hold an instance, proceed the one after, retained the
// one of an instance whose terminate hook was abandoned.
func (s LifecycleState) wait() LifecycleState     { return s + ":Wait" }
func (s LifecycleState) proceed() LifecycleState  { return s + ":Proceed" }
func (s LifecycleState) retained() LifecycleState { return s + ":Retained" }

// warm tells whether an instance in this state belongs to the warm pool.
func (s LifecycleState) warm() bool { return strings.HasPrefix(string(s), "Warmed:") }

// Transition is what a hook waits for.
type Transition string

// The two kinds of transition (Amazon EC2 Auto Scaling API Reference, LifecycleHook).
const (
	Launching Transition = "autoscaling:EC2_INSTANCE_LAUNCHING"
	Leaving   Transition = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// Where instances come from and go to, in events.
const (
	toEC2   = "EC2"
	toGroup = "AutoScalingGroup"
	toPool  = "WarmPool"
)

// Journey names a way from one lasting state to another.
type Journey string

// The journeys of an instance.
const (
	ColdStart    Journey = "cold start"     // launched into the group
	IntoPool     Journey = "into pool"      // launched into the warm pool
	OutOfPool    Journey = "out of pool"    // from the warm pool into service
	ScaleIn      Journey = "scale in"       // out of service, and terminated
	ReturnToPool Journey = "return to pool" // out of service, back to the warm pool
	PoolShrink   Journey = "pool shrink"    // from the warm pool, and terminated
)

// path is the course of a journey.
type path struct {
	base                LifecycleState
	transition          Transition
	origin, destination string
	end                 LifecycleState // empty: the state of the warm pool
}

// find returns the course of a journey (Amazon EC2 Auto Scaling User Guide, Lifecycle
// state transitions for instances in a warm pool, and Warm pool event types).
func (j Journey) find() (path, bool) {
	p, ok := map[Journey]path{
		ColdStart:    {Pending, Launching, toEC2, toGroup, InService},
		IntoPool:     {WarmedPending, Launching, toEC2, toPool, ""},
		OutOfPool:    {Pending, Launching, toPool, toGroup, InService},
		ScaleIn:      {Terminating, Leaving, toGroup, toEC2, Terminated},
		ReturnToPool: {WarmedPending, Leaving, toGroup, toPool, ""},
		PoolShrink:   {WarmedTerminating, Leaving, toPool, toEC2, WarmedTerminated},
	}[j]
	return p, ok
}

// steady is the lasting state that an instance in a given state is on its way to, which
// is what instance metadata tells it (Amazon EC2 Auto Scaling User Guide, Retrieve the
// target lifecycle state through instance metadata).
func steady(s, pool LifecycleState) LifecycleState {
	name := string(s)
	switch {
	case strings.HasPrefix(name, "Warmed:Terminat"):
		return WarmedTerminated
	case strings.HasPrefix(name, "Warmed:Pending"):
		return pool
	case s.warm():
		return s
	case strings.HasPrefix(name, "Terminat"):
		return Terminated
	case strings.HasPrefix(name, "Detach"):
		return Detached
	case strings.HasSuffix(name, "Standby"):
		return Standby
	default:
		return InService
	}
}
