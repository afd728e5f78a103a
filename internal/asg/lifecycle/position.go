package lifecycle

import "strings"

// Phase is a part of an instance's lifecycle in its group.
type Phase string

// The phases (Amazon EC2 Auto Scaling User Guide, "Amazon EC2 Auto Scaling instance
// lifecycle" and "Lifecycle state transitions for instances in a warm pool").
const (
	// Joining: on its way into service, launched or from the warm pool.
	Joining Phase = "Joining"
	// Serving: in service.
	Serving Phase = "Serving"
	// Warming: on its way into the warm pool; launched, or from service.
	Warming Phase = "Warming"
	// Warm: in the warm pool.
	Warm Phase = "Warm"
	// Leaving: on its way out of service, to be terminated.
	Leaving Phase = "Leaving"
	// LeavingPool: on its way out of the warm pool, to be terminated.
	LeavingPool Phase = "LeavingPool"
	// Retained: its termination was abandoned, and it is kept until it is terminated manually.
	Retained Phase = "Retained"
	// Aside: in standby, detached, having its root volume replaced, or on its way
	// there or back.
	Aside Phase = "Aside"
	// Gone: terminated.
	Gone Phase = "Gone"
	// Unknown: in no state, or in one that this release does not know. It never counts as in
	// service.
	Unknown Phase = ""
)

// Step is the progress of an instance in a phase.
type Step string

// The steps of a phase. Permanent phases have only There.
const (
	Moving     Step = "Moving"     // before hooks hold it
	Waiting    Step = "Waiting"    // hooks hold it
	Proceeding Step = "Proceeding" // hooks have released it
	There      Step = "There"
)

// Position is a parsed lifecycle state.
type Position struct {
	Phase Phase
	Step  Step
}

// Held reports whether a hook holds the instance.
func (p Position) Held() bool { return p.Step == Waiting }

// Lasting returns the phase of a permanent state, and Unknown for any other. Instance metadata
// has such a state as the target (Amazon EC2 Auto Scaling User Guide, "Retrieve the target
// lifecycle state through instance metadata").
func (p Position) Lasting() Phase {
	if p.Step != There {
		return Unknown
	}
	return p.Phase
}

// Stand is the progress of an instance in a transition with hooks.
type Stand int

// The values of Stand.
const (
	// Unseen: no state is known.
	Unseen Stand = iota
	// Before: its hooks do not hold it yet.
	Before
	// Held: hooks hold it.
	Held
	// Past: the wait is over.
	Past
	// Elsewhere: it is in another transition, and nothing is completed for this one.
	Elsewhere
)

// On returns the progress of the instance in the transition through a phase to the one at its
// end.
func (p Position) On(way, end Phase) Stand {
	switch {
	case p.Phase == end, p.Phase == way && p.Step == Proceeding:
		return Past
	case p.Phase != way:
		return Elsewhere
	case p.Held():
		return Held
	}
	return Before
}

// Read parses a lifecycle state as Auto Scaling writes it. The list of states is open: unknown
// states give Unknown.
func Read(state string) Position {
	state = strings.TrimSpace(state)
	base, step := state, Moving
	for suffix, s := range map[string]Step{":Wait": Waiting, ":Proceed": Proceeding} {
		if b, ok := strings.CutSuffix(state, suffix); ok {
			base, step = b, s
		}
	}
	if strings.HasSuffix(state, ":Retained") {
		return Position{Retained, There}
	}
	if phase, ok := moving()[base]; ok {
		return Position{phase, step}
	}
	if phase, ok := lasting()[state]; ok {
		return Position{phase, There}
	}
	return Position{Unknown, There}
}

func moving() map[string]Phase {
	return map[string]Phase{
		"Pending": Joining, "Warmed:Pending": Warming, "Terminating": Leaving, "Warmed:Terminating": LeavingPool,
		"Detaching": Aside, "EnteringStandby": Aside, "ReplacingRootVolume": Aside,
	}
}

func lasting() map[string]Phase {
	return map[string]Phase{
		"InService": Serving, "Warmed:Stopped": Warm, "Warmed:Running": Warm, "Warmed:Hibernated": Warm,
		"Terminated": Gone, "Warmed:Terminated": Gone,
		"Standby": Aside, "Detached": Aside, "RootVolumeReplaced": Aside,
	}
}
