package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// groupKind is what is counted of a group.
type groupKind string

const (
	inService groupKind = "in-service"
	onTheWay  groupKind = "joining"
	warming   groupKind = "warming"
	warmOnes  groupKind = "warm"
	leavers   groupKind = "leaving"
	kept      groupKind = "retained"
	// warmNodes are warm instances, or some on their way into the pool, that have a Node
	// all the same.
	warmNodes groupKind = "warm-nodes"
	// earlyNodes take pods though their instance is not in service yet: their startup
	// taint is off.
	earlyNodes groupKind = "early-nodes"
	// hooksAnswered counts the times that a hook held an instance and was answered,
	// timedOut those that nobody answered in time, abandoned those that ended the
	// instance's launch or its way back into the pool.
	hooksAnswered groupKind = "answered"
	timedOut      groupKind = "timed-out"
	abandoned     groupKind = "abandoned"
)

func groupKinds() []groupKind {
	return []groupKind{
		inService, onTheWay, warming, warmOnes, leavers, kept, warmNodes, earlyNodes, hooksAnswered, timedOut, abandoned,
	}
}

type groupCount struct {
	What groupKind
	Op   string
	N    int
}

// groupCounts: a group has so many of each.
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

// groupCount lists those that are counted, by what the script calls them.
func (w *World) groupCount(group string, what groupKind) []string {
	var out []string
	for _, m := range w.sortedMembers(group) {
		n := w.byInstance(m.instance)
		if m.is(what, n) {
			out = append(out, w.called(m.instance))
		}
	}
	for _, f := range w.firings {
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

// instanceAnswers: the hooks that held an instance were answered so often.
type instanceAnswers struct {
	Node, Op string
	N        int
}

func (c instanceAnswers) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	count := 0
	for _, f := range w.firings {
		if f.Instance == n.instance && f.counts(hooksAnswered) {
			count++
		}
	}
	return compare(count, c.Op, c.N), fmt.Sprintf("there were %d answers", count)
}

// hooksEnded: hooks of a group have held instances, and each was answered.
type hooksEnded struct{ Group string }

func (c hooksEnded) Holds(w *World) (bool, string) {
	var open []string
	all := 0
	for _, f := range w.firings {
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
		return false, "no hook of it ever held an instance"
	}
	return len(open) == 0, strings.Join(open, "; ")
}
