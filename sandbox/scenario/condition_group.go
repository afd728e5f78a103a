package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// groupKind is a kind of instance, node or hook execution of a group that a script counts.
type groupKind string

const (
	groupInService groupKind = "in-service"
	groupJoining   groupKind = "joining"
	groupWarming   groupKind = "warming"
	groupWarm      groupKind = "warm"
	groupLeaving   groupKind = "leaving"
	groupRetained  groupKind = "retained"
	// warmNodes are instances in the warm pool, or on their way into it, that have a Node despite
	// that.
	warmNodes groupKind = "warm-nodes"
	// earlyNodes accept pods before their instance is in service: they have no startup taint.
	earlyNodes groupKind = "early-nodes"
	// hooksAnswered counts the hook executions with an answer, and timedOut those that timed out.
	// abandoned counts those that ended the launch of an instance or its return to the pool.
	hooksAnswered groupKind = "answered"
	timedOut      groupKind = "timed-out"
	abandoned     groupKind = "abandoned"
)

func groupKinds() []groupKind {
	return []groupKind{
		groupInService, groupJoining, groupWarming, groupWarm, groupLeaving, groupRetained, warmNodes, earlyNodes, hooksAnswered, timedOut, abandoned,
	}
}

type groupCount struct {
	What groupKind
	Op   string
	N    int
}

// groupCounts: a group has these numbers of instances, nodes or hook executions.
type groupCounts struct {
	Group  string
	Bounds []groupCount
}

func (c groupCounts) Holds(w *World) (bool, string) {
	var wrong []string
	for _, b := range c.Bounds {
		if those := w.groupCount(c.Group, b.What); !compare(len(those), b.Op, b.N) {
			wrong = append(wrong, fmt.Sprintf("%s=%d (%s)", b.What, len(those), strings.Join(those, ", ")))
		}
	}
	if len(wrong) == 0 {
		return true, ""
	}
	return false, strings.Join(wrong, " ") + "; its instances: " + w.describeGroup(c.Group)
}

// groupCount lists the counted items, by the script's names.
func (w *World) groupCount(group string, what groupKind) []string {
	var out []string
	for _, m := range w.sortedMembers(group) {
		n := w.byInstance(m.instance)
		if m.is(what, n) {
			out = append(out, w.called(m.instance))
		}
	}
	for _, f := range w.hookExecutions {
		if f.Group == group && f.counts(what) {
			out = append(out, w.called(f.Instance)+" by "+f.Hook)
		}
	}
	return out
}

func (w *World) describeGroup(group string) string {
	var out []string
	for _, m := range w.sortedMembers(group) {
		out = append(out, w.called(m.instance)+" "+m.state)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// instanceIs: an instance is in a lifecycle state, or was in it at some time.
type instanceIs struct {
	Node, State string
	Was         bool
}

func (c instanceIs) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	m := w.members[n.instance]
	if m == nil {
		return false, "it was never in a group"
	}
	if c.Was {
		return slices.Contains(m.states, c.State), "it was " + strings.Join(m.states, ", ")
	}
	return m.state == c.State, "it is " + m.state
}

// answerCount: the hooks of an instance have this number of answers.
type answerCount struct {
	Node, Op string
	N        int
}

func (c answerCount) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	count := 0
	for _, f := range w.hookExecutions {
		if f.Instance == n.instance && f.counts(hooksAnswered) {
			count++
		}
	}
	return compare(count, c.Op, c.N), fmt.Sprintf("there were %d answers", count)
}

// hooksEnded: hooks of a group have held instances, and each has an answer.
type hooksEnded struct{ Group string }

func (c hooksEnded) Holds(w *World) (bool, string) {
	var open []string
	all := 0
	for _, f := range w.hookExecutions {
		if f.Group != c.Group {
			continue
		}
		all++
		if !f.counts(hooksAnswered) {
			open = append(open, fmt.Sprintf("%s of %s: %s", f.Hook, w.called(f.Instance), f.end()))
		}
	}
	slices.Sort(open)
	if all == 0 {
		return false, "its hooks never held an instance"
	}
	return len(open) == 0, strings.Join(open, "; ")
}
