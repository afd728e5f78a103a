package history

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// spotNotice is that of EC2. A warning does not say when the instance ends, so no other is possible.
	spotNotice = 2 * time.Minute
	// lastEvent is when the last event begins at the latest.
	lastEvent = 30 * time.Second
	// longestFault is short, so that the faults of a history leave time for a drain.
	longestFault = 8 * time.Second
	mostFaults   = 3
)

// Random makes a history. The same seed, faults and size give the same one. Size multiplies nodes,
// workloads and notices; 1 is a small history.
func Random(seed uint64, faults []string, size int) History {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	h := History{Seed: seed}
	for i := range g.between(3*size, 6*size) {
		h.Nodes = append(h.Nodes, Node{Name: fmt.Sprintf("n%d", i), Zone: "us-east-1" + string("abc"[i%3]), Team: g.chance(60)})
	}
	for i := range g.between(2*size, 5*size) {
		h.Workloads = append(h.Workloads, g.workload(fmt.Sprintf("w%d", i)))
	}
	for _, kind := range []string{"SpotInterruption", "ScheduledChange", "RebalanceRecommendation"} {
		if g.chance(40) {
			h.Policies = append(h.Policies, Policy{Name: fmt.Sprintf("p%d", len(h.Policies)), Kind: kind, Action: g.action(), Evict: g.chance(40)})
		}
	}
	h.Events = append(g.notices(h.Nodes, 3*size), g.faults(faults)...)
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return h
}

// generator makes random choices.
type generator struct{ *rand.Rand }

// between is a number from least to most, inclusive.
func (g generator) between(least, most int) int { return least + g.IntN(most-least+1) }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

// duration is at least least and below most, in tenths of a second.
func (g generator) duration(least, most time.Duration) time.Duration {
	return (least + time.Duration(g.Int64N(int64(most-least)))).Truncate(100 * time.Millisecond)
}

func (g generator) action() string {
	if g.chance(75) {
		return "Drain"
	}
	return "Cordon"
}

func (g generator) workload(name string) Workload {
	w := Workload{
		Name: name, Kind: []WorkloadKind{Deployment, Deployment, StatefulSet, BarePod}[g.IntN(4)],
		Replicas: g.between(1, 4), Grace: []int{2, 5, 10, 20}[g.IntN(4)], Start: g.between(1, 5),
		Budget: -1, DoNotDisrupt: g.chance(15),
	}
	w.Stop = g.between(1, w.Grace)
	if w.Kind == BarePod {
		w.Replicas = 1
	}
	if g.chance(50) {
		w.Budget = g.IntN(2)
	}
	return w
}

// notices are about different nodes. At least one node has none.
func (g generator) notices(nodes []Node, most int) (all []Event) {
	order := g.Perm(len(nodes))
	at := time.Duration(0)
	for len(order) > 1 && len(all) < most {
		n := g.between(1, min(2, len(order)-1))
		e := Event{At: at, Kind: []EventKind{Spot, Spot, Spot, Rebalance, Scheduled, Scheduled}[g.IntN(6)]}
		for _, i := range order[:n] {
			e.Nodes = append(e.Nodes, nodes[i].Name)
		}
		order = order[n:]
		if e.Kind == Spot {
			e.Notice = spotNotice
		}
		all = append(all, e)
		if e.Kind == Scheduled && g.chance(50) {
			all = append(all, Event{At: at + g.duration(time.Second, lastEvent), Kind: Cancel, Nodes: e.Nodes})
		}
		at += g.duration(100*time.Millisecond, lastEvent/time.Duration(most))
	}
	return all
}

func (g generator) faults(menu []string) (all []Event) {
	if len(menu) == 0 {
		return nil
	}
	for range g.between(1, mostFaults) {
		all = append(all, Event{
			At: g.duration(-3*time.Second, lastEvent), Kind: Fault, Fault: menu[g.IntN(len(menu))],
			For: g.duration(time.Second, longestFault), Seed: g.Uint64N(1000),
		})
	}
	return all
}
