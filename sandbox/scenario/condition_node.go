package scenario

import (
	"fmt"
	"strings"
)

// nodeState is a state of a node.
type nodeState string

const (
	nodeUp        nodeState = "ready"
	nodeSilent    nodeState = "not-ready"
	nodeCordoned  nodeState = "cordoned"
	nodeAtRisk    nodeState = "at-risk"
	nodeOpen      nodeState = "open" // neither cordoned nor at risk
	nodeEmpty     nodeState = "empty"
	nodePowerLost nodeState = "powered-off"
	nodeGone      nodeState = "gone" // the Node was deleted
	// nodeDraining is a cordoned node with pods that must still leave.
	nodeDraining nodeState = "draining"
	// nodeAsBefore is a node whose labels, annotations and spec are, byte for byte, those at its
	// first interrupt.
	nodeAsBefore nodeState = "as-before"
	// nodeProtected is a node whose Node or NodeClaim forbids Karpenter to disrupt it.
	// nodeUnprotected is another node of Karpenter's.
	nodeProtected   nodeState = "protected"
	nodeUnprotected nodeState = "unprotected"
)

func nodeStates() []nodeState {
	return []nodeState{nodeUp, nodeSilent, nodeCordoned, nodeAtRisk, nodeOpen, nodeEmpty, nodeDraining, nodePowerLost, nodeGone, nodeAsBefore, nodeProtected, nodeUnprotected}
}

type nodeIs struct {
	Node  string
	State nodeState
}

func (c nodeIs) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	is := w.states(n)
	var so []string
	for _, s := range nodeStates() {
		if is[s] {
			so = append(so, string(s))
		}
	}
	if len(so) == 0 {
		so = []string{"not up yet"}
	}
	text := fmt.Sprintf("it is %s, with %d pods that must leave it", strings.Join(so, ", "), w.left(n))
	if c.State == nodeAsBefore && !is[nodeAsBefore] {
		text += fmt.Sprintf("; it was %s and is %s", n.before, n.now)
	}
	return is[c.State], text
}

func (w *World) states(n *nodeTrack) map[nodeState]bool {
	left := w.left(n)
	is := map[nodeState]bool{
		nodeUp:        n.ready,
		nodeSilent:    n.everReady && !n.ready,
		nodeCordoned:  n.cordoned && n.gone.IsZero(),
		nodeAtRisk:    n.atRisk && n.gone.IsZero(),
		nodeOpen:      n.everReady && !n.cordoned && !n.atRisk,
		nodeEmpty:     n.everReady && left == 0,
		nodeDraining:  n.cordoned && n.gone.IsZero() && left > 0,
		nodePowerLost: !n.powerLost.IsZero(),
		nodeGone:      !n.gone.IsZero(),
		nodeAsBefore:  n.before != "" && n.before == n.now,
	}
	if n.gone.IsZero() {
		is[nodeProtected] = w.protected(n)
		is[nodeUnprotected] = n.provisioned && n.everReady && !w.protected(n)
	}
	return is
}

// nodesCount: this number of the launched nodes is in a state.
type nodesCount struct {
	State nodeState
	Op    string
	N     int
}

func (c nodesCount) Holds(w *World) (bool, string) {
	var those []string
	for _, n := range w.sortedNodes() {
		if w.states(n)[c.State] {
			those = append(those, n.name)
		}
	}
	return compare(len(those), c.Op, c.N), strings.TrimSpace(fmt.Sprintf("%s=%d %s", c.State, len(those), strings.Join(those, ",")))
}

// nodePods: a node has this number of pods that must leave.
type nodePods struct {
	Node string
	Op   string
	N    int
}

func (c nodePods) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	left := w.left(n)
	return compare(left, c.Op, c.N), fmt.Sprintf("there are %d", left)
}
