package autoscaling

import "strings"

// LifecycleState is the state of an instance in its group (Amazon EC2 Auto Scaling User Guide,
// Amazon EC2 Auto Scaling instance lifecycle).
type LifecycleState string

// The lasting states, and the states in which a transition starts. During a transition the latter
// get the suffixes ":Wait" and ":Proceed".
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

// wait is the state in which hooks hold an instance, and proceed the state after it. retained is
// the state of an instance whose terminate hook was abandoned.
func (s LifecycleState) wait() LifecycleState     { return s + ":Wait" }
func (s LifecycleState) proceed() LifecycleState  { return s + ":Proceed" }
func (s LifecycleState) retained() LifecycleState { return s + ":Retained" }

// warm reports whether an instance in this state belongs to the warm pool.
func (s LifecycleState) warm() bool { return strings.HasPrefix(string(s), "Warmed:") }

// LifecycleTransition is the kind of transition that a hook applies to.
type LifecycleTransition string

// The two kinds of transition (Amazon EC2 Auto Scaling API Reference, LifecycleHook).
const (
	Launching LifecycleTransition = "autoscaling:EC2_INSTANCE_LAUNCHING"
	Leaving   LifecycleTransition = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// Origins and destinations of instances, in events.
const (
	toEC2   = "EC2"
	toGroup = "AutoScalingGroup"
	toPool  = "WarmPool"
)

// Transition names a way from one lasting state to another.
type Transition string

// The transitions of an instance.
const (
	ColdStart    Transition = "cold start"     // launched into the group
	IntoPool     Transition = "into pool"      // launched into the warm pool
	OutOfPool    Transition = "out of pool"    // from the warm pool into service
	ScaleIn      Transition = "scale in"       // out of service, then terminated
	ReturnToPool Transition = "return to pool" // out of service, back to the warm pool
	PoolShrink   Transition = "pool shrink"    // from the warm pool, then terminated
)

// path holds the states of a transition.
type path struct {
	base                LifecycleState
	hookTransition      LifecycleTransition
	origin, destination string
	end                 LifecycleState // empty: the state of the warm pool
}

// path returns the states of a transition. Source: Amazon EC2 Auto Scaling User Guide, Lifecycle
// state transitions for instances in a warm pool, and Warm pool event types.
func (j Transition) path() (path, bool) {
	p, ok := map[Transition]path{
		ColdStart:    {Pending, Launching, toEC2, toGroup, InService},
		IntoPool:     {WarmedPending, Launching, toEC2, toPool, ""},
		OutOfPool:    {Pending, Launching, toPool, toGroup, InService},
		ScaleIn:      {Terminating, Leaving, toGroup, toEC2, Terminated},
		ReturnToPool: {WarmedPending, Leaving, toGroup, toPool, ""},
		PoolShrink:   {WarmedTerminating, Leaving, toPool, toEC2, WarmedTerminated},
	}[j]
	return p, ok
}

// steady is the target lifecycle state in instance metadata of an instance in a given state. Source:
// Amazon EC2 Auto Scaling User Guide, Retrieve the target lifecycle state through instance metadata.
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
