package history

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// spotNotice is that of EC2. A warning does not say when the instance ends, so no other is possible
	// without agents: the metadata say it (EC2 User Guide, "spot/instance-action").
	spotNotice  = 2 * time.Minute
	agentNotice = 70 * time.Second
	// lastEvent is when the last event begins at the latest.
	lastEvent = 20 * time.Second
	// longestFault is short, so that the faults of a history leave time for a drain.
	longestFault = 8 * time.Second
	mostFaults   = 3
)

// Random makes a history for the setting of its seed. The same seed gives the same one.
func Random(seed uint64) History {
	on := Settings()[SettingOf(seed)]
	return random(seed, on, on.faults(skipped), 1)
}

// random adds up the nodes, workloads and notices of as many histories as size says. A large history
// holds no pods for long.
func random(seed uint64, on Setting, faults []string, size int) History {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 1)), agents: on.Agents}
	g.holds = g.chance(25) && size == 1
	h := History{Seed: seed}
	for i := range g.sum(size, 3, 6) {
		h.Nodes = append(h.Nodes, Node{Name: fmt.Sprintf("n%d", i), Zone: "us-east-1" + string("abc"[i%3]), Team: g.chance(60)})
	}
	for i := range g.sum(size, 2, 5) {
		h.Workloads = append(h.Workloads, g.workload(fmt.Sprintf("w%d", i)))
	}
	if on.Karpenter {
		g.provision(&h)
	}
	noticed := h.Nodes
	if on.Group {
		noticed = g.group(&h)
	}
	for _, kind := range []string{"SpotInterruption", "ScheduledChange", "RebalanceRecommendation"} {
		if g.chance(40) {
			p := Policy{Name: fmt.Sprintf("p%d", len(h.Policies)), Kind: kind, Action: g.action(), Evict: g.chance(40)}
			p.Pool = on.Karpenter && g.chance(60)
			p.First = p.Pool && p.Action == "Drain" && g.chance(60)
			h.Policies = append(h.Policies, p)
		}
	}
	h.Events = slices.Concat(h.Events, g.notices(noticed, 3*size), g.faults(faults))
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return h
}

// generator makes random choices.
type generator struct {
	*rand.Rand
	agents bool
	// holds: pods may be held until their last call. Such a history lasts as long as its notice.
	holds bool
}

// between is a number from least to most, inclusive.
func (g generator) between(least, most int) int { return least + g.IntN(most-least+1) }

// sum adds up numbers from least to most.
func (g generator) sum(numbers, least, most int) (total int) {
	for range numbers {
		total += g.between(least, most)
	}
	return total
}

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

// provision adds nodes of Karpenter, and what needs them.
func (g generator) provision(h *History) {
	w := g.workload("spread")
	w.Kind, w.Replicas, w.Spreads, w.DoNotDisrupt = Deployment, g.between(2, 3), true, false
	h.Workloads = append(h.Workloads, w)
	for i := range w.Replicas {
		h.Nodes = append(h.Nodes, Node{Name: fmt.Sprintf("k%d", i), Launched: true})
	}
}

// group adds members of an Auto Scaling group, most often one of which leaves. It returns the nodes that get notices.
func (g generator) group(h *History) (noticed []Node) {
	team := g.chance(60)
	for i := range g.between(2, 3) {
		h.Nodes = append(h.Nodes, Node{Name: fmt.Sprintf("g%d", i), Member: true, Team: team})
	}
	if !g.chance(80) {
		return h.Nodes
	}
	last := len(h.Nodes) - 1
	h.Events = append(h.Events, Event{At: g.duration(100*time.Millisecond, lastEvent/2), Kind: Leave, Nodes: []string{h.Nodes[last].Name}})
	return h.Nodes[:last]
}

func (g generator) workload(name string) Workload {
	w := Workload{
		Name: name, Kind: []WorkloadKind{Deployment, Deployment, StatefulSet, BarePod}[g.IntN(4)],
		Replicas: g.between(1, 4), Grace: []int{2, 5, 10, 20}[g.IntN(4)], Start: g.between(1, 5),
		Budget: -1, DoNotDisrupt: g.holds && g.chance(20),
	}
	w.Stop = g.between(1, w.Grace)
	if w.Kind == BarePod {
		w.Replicas = 1
	}
	if g.chance(50) {
		w.Budget = 1
	}
	if w.Budget > 0 && g.holds {
		w.Budget = g.IntN(2)
	}
	return w
}

// notices are about different nodes. A fifth of the nodes, and at least one, has none. The first is a spot warning.
func (g generator) notices(nodes []Node, most int) (all []Event) {
	order := g.Perm(len(nodes))[:len(nodes)-max(1, len(nodes)/5)]
	at := time.Duration(0)
	for len(order) > 0 && len(all) < most {
		n := g.between(1, min(2, len(order)))
		e := Event{At: at, Kind: []EventKind{Spot, Spot, Spot, Rebalance, Scheduled, Scheduled}[g.IntN(6)]}
		if len(all) == 0 {
			e.Kind = Spot
		}
		for _, i := range order[:n] {
			e.Nodes = append(e.Nodes, nodes[i].Name)
		}
		order = order[n:]
		if e.Kind == Spot {
			e.Notice = spotNotice
			if g.agents && g.chance(70) {
				e.Notice = agentNotice
			}
		}
		all = append(all, e)
		if e.Kind == Scheduled && g.chance(50) {
			all = append(all, Event{At: at + g.duration(time.Second, lastEvent), Kind: Cancel, Nodes: e.Nodes})
		}
		// Times are in tenths of a second, so the notices of very large histories go on after lastEvent.
		at += g.duration(100*time.Millisecond, max(lastEvent/time.Duration(most), 200*time.Millisecond))
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
