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
	agentNotice = 90 * time.Second
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
	if g.chance(50) {
		h.Workloads = append(h.Workloads, Workload{Name: "daemon", Kind: DaemonSet, Grace: 30, Start: g.between(1, 5), Stop: g.between(1, 10)})
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
	w, shared := g.deployment("spread", g.between(2, 3)), g.deployment("shared", g.between(3, 6))
	w.Spreads, shared.Shares = true, true
	h.Workloads = append(h.Workloads, w, shared)
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
	kinds := []WorkloadKind{Deployment, Deployment, Deployment, StatefulSet, Job, BarePod}
	w := Workload{Name: name, Kind: kinds[g.IntN(len(kinds))], Replicas: 1, DoNotDisrupt: g.holds && g.chance(20)}
	switch w.Kind {
	case Deployment:
		held := w.DoNotDisrupt
		w = g.deployment(name, g.between(1, 6))
		w.DoNotDisrupt = held
		return w
	case StatefulSet:
		w.Replicas, w.Volume = g.between(1, 3), g.chance(50)
	case Job:
		w.Replicas, w.Indexed, w.Run = g.between(1, 3), g.chance(50), g.between(20, 60)
	}
	if w.Kind != Job && g.chance(50) {
		w.Budget = g.budget(1)
	}
	return g.timed(w)
}

// deployment has a budget as on ordinary clusters: most often, one of several pods may be unavailable.
func (g generator) deployment(name string, replicas int) Workload {
	w := Workload{Name: name, Kind: Deployment, Replicas: replicas}
	switch n := g.IntN(10); {
	case replicas > 1 && n < 6:
		w.Budget = g.budget(1)
	case replicas > 1 && n < 8:
		w.Budget = fmt.Sprintf("minAvailable: %d", replicas-1)
	case replicas == 1 && n < 4:
		w.Budget = g.budget(1)
	}
	return g.timed(w)
}

// budget allows some unavailable pods, and none if pods may be held until their last call.
func (g generator) budget(unavailable int) string {
	if g.holds {
		unavailable = g.IntN(unavailable + 1)
	}
	return fmt.Sprintf("maxUnavailable: %d", unavailable)
}

// timed adds the times that pods take on ordinary clusters.
func (g generator) timed(w Workload) Workload {
	w.Grace, w.Start = []int{10, 30, 30, 45}[g.IntN(4)], g.between(5, 20)
	w.Stop = g.between(5, min(w.Grace, 40))
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
