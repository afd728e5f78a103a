package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// machineKind is a kind of object that a script counts: EC2 instances or Karpenter's NodeClaims.
type machineKind string

const (
	runningInstances  machineKind = "instances" // not shutting down
	launchedInstances machineKind = "launched"  // all so far
	nodeClaims        machineKind = "claims"
)

// machinesCount: this number of them exists, with any creator.
type machinesCount struct {
	What machineKind
	Op   string
	N    int
}

func (c machinesCount) Holds(w *World) (bool, string) {
	var those []string
	switch c.What {
	case nodeClaims:
		for name := range w.claims {
			those = append(those, name)
		}
	default:
		for id, m := range w.machines {
			if c.What == launchedInstances || !m.ending {
				those = append(those, w.called(id))
			}
		}
	}
	slices.Sort(those)
	return compare(len(those), c.Op, c.N), strings.TrimSpace(fmt.Sprintf("%s=%d %s", c.What, len(those), strings.Join(those, ",")))
}

// somethingLaunched: there is an instance without a name in the script.
type somethingLaunched struct{}

func (somethingLaunched) Holds(w *World) (bool, string) {
	return len(w.unnamed) > 0, "no instance without a name was launched"
}
