package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Lifecycle states as Auto Scaling writes them (Amazon EC2 Auto Scaling User Guide,
// "Amazon EC2 Auto Scaling instance lifecycle").
const (
	stateInService   = "InService"
	statePending     = "Pending"
	stateWarmed      = "Warmed:"
	stateWarmPending = "Warmed:Pending"
	stateTerminating = "Terminating"
	stateWait        = ":Wait"
	stateProceed     = ":Proceed"
	stateRetained    = ":Retained"
)

// lifecycleStates are those that a script may name.
func lifecycleStates() []string {
	var out []string
	for _, base := range []string{statePending, stateWarmPending, stateTerminating, "Warmed:Terminating"} {
		out = append(out, base, base+stateWait, base+stateProceed)
	}
	return append(out, stateInService, "Warmed:Stopped", "Warmed:Running", "Warmed:Hibernated", "Terminating:Retained",
		"Terminated", "Warmed:Terminated", "Standby", "Detached")
}

// memberTrack is the observed lifecycle of one instance in its group.
type memberTrack struct {
	instance, group string
	seq             int
	state           string
	states          []string // all so far
	returning       bool     // on its way from service into the warm pool
}

// Lifecycle is one change of an instance's lifecycle state.
type Lifecycle struct {
	Time            time.Time
	Instance, Group string
	State           string
	Cause           string
}

// HookExecution is one execution of a lifecycle hook.
type HookExecution struct {
	Instance, Group, Hook string
	Held, Ended           time.Time // Ended is zero while the hook holds the instance
	Result                string    // CONTINUE or ABANDON
	By                    HookExecutionEnd
}

// HookExecutionEnd is what ended an execution.
type HookExecutionEnd string

// The ends.
const (
	EndedByAnswer  HookExecutionEnd = "answer"
	EndedByTimeout HookExecutionEnd = "timeout"
	// EndedByLoss: the instance was terminated, or changed its transition.
	EndedByLoss HookExecutionEnd = "gone"
)

// counts reports whether a script counts an execution under this name.
func (f HookExecution) counts(what groupKind) bool {
	switch what {
	case hooksAnswered:
		return f.By == EndedByAnswer
	case timedOut:
		return f.By == EndedByTimeout
	case abandoned:
		return f.Result == "ABANDON" && f.By != EndedByLoss
	default:
		return false
	}
}

func (f HookExecution) end() string {
	switch {
	case f.Ended.IsZero():
		return "it still holds the instance"
	case f.By == EndedByTimeout:
		return "no answer in time: " + f.Result
	case f.By == EndedByLoss:
		return "the instance was gone"
	default:
		return f.Result
	}
}

// is reports whether an instance counts as what; n is its node, or nil.
func (m *memberTrack) is(what groupKind, n *nodeTrack) bool {
	registered := n != nil && n.now != "" && n.gone.IsZero()
	early := m.warm() || m.inState(groupWarming) && !m.returning
	switch what {
	case warmNodes:
		return registered && early
	case earlyNodes:
		return registered && !n.held && (early || m.inState(groupJoining))
	default:
		return m.inState(what)
	}
}

// inState reports whether its lifecycle state is of a kind.
func (m *memberTrack) inState(what groupKind) bool {
	switch what {
	case groupInService:
		return m.state == stateInService
	case groupJoining:
		return strings.HasPrefix(m.state, statePending)
	case groupWarming:
		return strings.HasPrefix(m.state, stateWarmPending)
	case groupWarm:
		return m.warm()
	case groupLeaving:
		return strings.HasPrefix(strings.TrimPrefix(m.state, stateWarmed), stateTerminating) && !m.inState(groupRetained)
	case groupRetained:
		return strings.HasSuffix(m.state, stateRetained)
	default:
		return false
	}
}

// warm reports whether it is in the warm pool.
func (m *memberTrack) warm() bool {
	return slices.Contains([]string{"Warmed:Stopped", "Warmed:Running", "Warmed:Hibernated"}, m.state)
}

func (w *World) sortedMembers(group string) []*memberTrack {
	var out []*memberTrack
	for _, m := range w.members {
		if m.group == group {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *memberTrack) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// Lifecycle records that an instance changed its lifecycle state.
func (w *World) Lifecycle(l Lifecycle) []Moment {
	m := w.members[l.Instance]
	if m == nil {
		m = &memberTrack{instance: l.Instance, seq: len(w.members)}
		w.members[l.Instance] = m
	}
	before := m.state
	m.group, m.state = l.Group, l.State
	m.states = append(m.states, l.State)
	if base := strings.TrimSuffix(l.State, stateWait); base == stateWarmPending && !strings.HasPrefix(before, stateWarmed) {
		m.returning = before == stateInService
	}
	n := w.byInstance(l.Instance)
	if n != nil && before == stateInService && (l.State == stateTerminating || m.returning) {
		w.markInterrupted(n) // the group has chosen it
	}
	text := m.describeChange(before, l.Cause)
	if text == "" {
		return nil
	}
	return []Moment{w.moment(l.Time, MomentLifecycle, w.called(l.Instance), "", text+" ("+l.State+")")}
}

// describeChange describes the new state of an instance. It returns "" if the change is no moment.
func (m *memberTrack) describeChange(before, cause string) string {
	switch {
	case m.state == before || strings.HasSuffix(m.state, stateProceed):
		return ""
	case strings.HasSuffix(m.state, stateWait):
		return "held by a hook"
	case m.inState(groupRetained):
		return "retained, because its hook was abandoned"
	case m.state == statePending && strings.HasPrefix(before, stateWarmed):
		return "taken out of the warm pool, on its way into service"
	case m.state == stateTerminating && cause != "":
		return "terminating: " + strings.TrimSuffix(cause, ".")
	default:
		return describeState(m.state)
	}
}

// describeState describes a lifecycle state.
func describeState(state string) string {
	words := map[string]string{
		statePending: "on its way into service", stateInService: "in service", stateWarmPending: "on its way into the warm pool",
		"Warmed:Stopped": "in the warm pool", "Warmed:Running": "in the warm pool", "Warmed:Hibernated": "in the warm pool",
		stateTerminating: "terminating", stateWarmed + stateTerminating: "leaving the warm pool",
		"Terminated": "gone", "Warmed:Terminated": "gone", "Detaching": "leaving its group", "Detached": "out of its group",
	}
	if text, ok := words[state]; ok {
		return text
	}
	return "in standby, or on its way there or back"
}

// HookExecutions records all hook executions so far.
func (w *World) HookExecutions(all []HookExecution) []Moment {
	var out []Moment
	for i, f := range all {
		known := i < len(w.hookExecutions) && w.hookExecutions[i].By == f.By
		if known || f.Ended.IsZero() {
			continue
		}
		text := fmt.Sprintf("hook %s: %s after %s", f.Hook, f.Result, seconds(f.Ended.Sub(f.Held)))
		switch f.By {
		case EndedByTimeout:
			text = fmt.Sprintf("hook %s: no answer before its timeout: %s", f.Hook, f.Result)
		case EndedByLoss:
			continue
		}
		out = append(out, w.moment(f.Ended, MomentAnswered, w.called(f.Instance), "", text))
	}
	w.hookExecutions = all
	return out
}

// MarkInterrupted marks the nodes of an interruption, so that their pods are affected.
func (w *World) MarkInterrupted(names []string) {
	for _, name := range names {
		w.nodes[name].interrupted = true
	}
	for _, n := range w.nodes {
		if n.before == "" {
			n.before = n.now
		}
	}
}

// markInterrupted marks a node, so that its pods are affected.
func (w *World) markInterrupted(n *nodeTrack) {
	n.interrupted = true
	n.before = cmp.Or(n.before, n.now)
}
