package lifecycle

import "strings"

// Phase is a part of an instance's life in its group.
type Phase string

// The phases (Amazon EC2 Auto Scaling User Guide, "Amazon EC2 Auto Scaling instance
// lifecycle" and "Lifecycle state transitions for instances in a warm pool").
const (
	// Joining: on its way into service, launched or out of the warm pool.
	Joining Phase = "Joining"
	// Serving: in service.
	Serving Phase = "Serving"
	// Warming: on its way into the warm pool; launched, or back from service.
	Warming Phase = "Warming"
	// Warm: in the warm pool.
	Warm Phase = "Warm"
	// Leaving: on its way out of service, to be terminated.
	Leaving Phase = "Leaving"
	// LeavingPool: on its way out of the warm pool, to be terminated.
	LeavingPool Phase = "LeavingPool"
	// Retained: abandoned on its way, and kept until somebody terminates it.
	Retained Phase = "Retained"
	// Aside: in standby, detached, having its root volume replaced, or on its way
	// there or back.
	Aside Phase = "Aside"
	// Gone: terminated.
	Gone Phase = "Gone"
	// Unknown: in a state that this release does not know, or in none. It never
	// means that the instance may serve.
	Unknown Phase = ""
)

// Step is how far an instance is on its way.
type Step string

// The steps of a phase. Phases that last have only There.
const (
	Moving     Step = "Moving"     // before hooks are asked
	Waiting    Step = "Waiting"    // hooks hold it
	Proceeding Step = "Proceeding" // hooks have let it pass
	There      Step = "There"
)

// Position is where an instance stands.
type Position struct {
	Phase Phase
	Step  Step
}

// Held reports whether a hook holds the instance.
func (p Position) Held() bool { return p.Step == Waiting }

// Lasting returns the phase of a state that lasts, and Unknown of any other. Such a state
// is what instance metadata has as the target (Amazon EC2 Auto Scaling User Guide,
// "Retrieve the target lifecycle state through instance metadata").
func (p Position) Lasting() Phase {
	if p.Step != There {
		return Unknown
	}
	return p.Phase
}

// Stand is where an instance stands on a way on which hooks may hold it.
type Stand int

// The stands.
const (
	// Unseen: no state is known.
	Unseen Stand = iota
	// Before: its hooks do not hold it yet.
	Before
	// Held: hooks hold it.
	Held
	// Past: the wait is over.
	Past
	// Elsewhere: it is on another way, and nothing is completed for this one.
	Elsewhere
)

// On tells where the instance stands on the way through a phase to the one at its end.
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

// Read reads a lifecycle state as Auto Scaling writes it. The list of states is
// open: what is not known is Unknown.
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
