package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// settling is how long a script goes on after the last event or fault.
	settling = 2 * time.Second
	// firstBoot is the boot time of the nodes that exist before the first notice. Later ones take as
	// long as on an ordinary cluster.
	firstBoot = 200 * time.Millisecond
)

// Scenario writes a history as a scenario.
func (h History) Scenario() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "A random history, seed %d\n\n-- script --\nboot %s\n", h.Seed, firstBoot)
	if h.launched() > 0 {
		b.WriteString("karpenter on\n")
	}
	for _, n := range h.Nodes {
		if !n.Launched && !n.Member {
			fmt.Fprintf(&b, "node %s zone=%s spot%s\n", n.Name, n.Zone, n.labels())
		}
	}
	if own := len(h.Nodes) - h.launched() - len(h.members()); own > 0 {
		fmt.Fprintf(&b, "wait nodes ready=%d within 90s\n", own)
	}
	h.group(&b)
	// What shares Karpenter's nodes must not make it launch others.
	first, later := h.workloads(false), h.workloads(true)
	files := []struct {
		name string
		docs []string
	}{
		{"policies.yaml", mapped(h.Policies, Policy.yaml)}, {"workloads.yaml", mapped(first, Workload.yaml)}, {"shared.yaml", mapped(later, Workload.yaml)},
	}
	for _, file := range files[:2] {
		apply(&b, file.name, len(file.docs))
	}
	for _, n := range h.Nodes {
		if n.Launched {
			fmt.Fprintf(&b, "wait node %[1]s launched within 2m\nwait node %[1]s ready within 90s\n", n.Name)
		}
	}
	apply(&b, files[2].name, len(later))
	if len(h.Workloads) > 0 {
		b.WriteString("wait pods ready within 2m\n")
	}
	b.WriteString("boot ordinary\n")
	h.script(&b)
	for _, file := range files {
		if len(file.docs) > 0 {
			fmt.Fprintf(&b, "-- %s --\n%s", file.name, strings.Join(file.docs, "---\n"))
		}
	}
	return []byte(b.String())
}

func apply(b *strings.Builder, file string, docs int) {
	if docs > 0 {
		fmt.Fprintf(b, "apply %s\n", file)
	}
}

// workloads are those that share the nodes of Karpenter, or all others.
func (h History) workloads(share bool) []Workload {
	return slices.DeleteFunc(slices.Clone(h.Workloads), func(w Workload) bool { return w.Shares != share })
}

// group writes the Auto Scaling group, if there is one, and names its members.
func (h History) group(b *strings.Builder) {
	members := h.members()
	if len(members) == 0 {
		return
	}
	// The name of a deleted group is not used again soon.
	fmt.Fprintf(b, "group web-%d desired=%d spot%s\n", h.Seed, len(members), members[0].labels())
	for _, n := range members {
		fmt.Fprintf(b, "wait node %s launched within 2m\n", n.Name)
	}
	for _, n := range members {
		fmt.Fprintf(b, "wait node %s ready within 90s\n", n.Name)
	}
}

func (n Node) labels() string {
	if n.Team {
		return " labels=team=web"
	}
	return ""
}

func mapped[T any](all []T, f func(T) string) (out []string) {
	for _, one := range all {
		out = append(out, f(one))
	}
	return out
}

// script writes the events. The player waits for what follows from them. A notice restarts the clock of a script, and before the first one there is
// none: what comes before it happens at once.
func (h History) script(b *strings.Builder) {
	clock, end, running := time.Duration(0), time.Duration(0), false
	for _, e := range h.Events {
		if running && e.At > clock {
			fmt.Fprintf(b, "until %s\n", e.At-clock)
		}
		b.WriteString(e.line() + "\n")
		if e.interrupts() {
			clock, running = e.At, true
		}
		end = max(end, e.At+e.For+settling)
	}
	fmt.Fprintf(b, "until %s\n", end-clock)
}

func (e Event) line() string {
	nodes := strings.Join(e.Nodes, " ")
	switch e.Kind {
	case Fault:
		return fmt.Sprintf("chaos %s for=%s seed=%d", e.Fault, e.For, e.Seed)
	case Cancel:
		return "cancel " + nodes
	case Spot:
		return fmt.Sprintf("interrupt %s kind=spot notice=%s", nodes, e.Notice)
	case Leave:
		return "terminate " + nodes + " by=group"
	case Scheduled:
		return fmt.Sprintf("interrupt %s kind=scheduled notice=9h", nodes)
	default:
		return fmt.Sprintf("interrupt %s kind=%s", nodes, e.Kind)
	}
}

func (p Policy) yaml() string {
	lines := []string{
		"apiVersion: lifeboat.dev/v1beta1", "kind: InterruptionPolicy", "metadata: {name: " + p.Name + "}", "spec:",
		"  nodes: " + map[bool]string{false: "{matchLabels: {team: web}}", true: "{nodePools: [default]}"}[p.Pool], "  rules:", "  - kinds: [" + p.Kind + "]", "    action: " + p.Action,
	}
	if p.Kind == "ScheduledChange" {
		lines = append(lines, "    notBefore: 24h")
	}
	if p.Evict && p.Action == "Drain" {
		lines = append(lines, "    strategy: Evict")
	}
	if p.First {
		lines = append(lines, "    replacement: Before")
	}
	return strings.Join(lines, "\n") + "\n"
}
