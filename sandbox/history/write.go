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
)

// Scenario writes a history as a scenario.
func (h History) Scenario() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "A random history, seed %d\n\n-- script --\n", h.Seed)
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
	if len(h.Policies) > 0 {
		b.WriteString("apply policies.yaml\n")
	}
	if len(h.Workloads) > 0 {
		b.WriteString("apply workloads.yaml\n")
	}
	for _, n := range h.Nodes {
		if n.Launched {
			fmt.Fprintf(&b, "wait node %[1]s launched within 2m\nwait node %[1]s ready within 90s\n", n.Name)
		}
	}
	if len(h.Workloads) > 0 {
		b.WriteString("wait pods ready within 90s\n")
	}
	h.script(&b)
	for _, file := range []struct {
		name string
		docs []string
	}{{"policies.yaml", mapped(h.Policies, Policy.yaml)}, {"workloads.yaml", mapped(h.Workloads, Workload.yaml)}} {
		if len(file.docs) > 0 {
			fmt.Fprintf(&b, "-- %s --\n%s", file.name, strings.Join(file.docs, "---\n"))
		}
	}
	return []byte(b.String())
}

// group writes the Auto Scaling group, if there is one, and names its members.
func (h History) group(b *strings.Builder) {
	members := h.members()
	if len(members) == 0 {
		return
	}
	// The name of a deleted group is not used again soon.
	fmt.Fprintf(b, "group web-%d desired=%d spot boot=1s%s\n", h.Seed, len(members), members[0].labels())
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

func (w Workload) yaml() string {
	head := []string{"apiVersion: apps/v1", "kind: " + string(w.Kind), "metadata: {name: " + w.Name + "}", "spec:"}
	indent := "    "
	if w.Kind == BarePod {
		head = []string{"apiVersion: v1", "kind: Pod"}
		indent = ""
	} else {
		head = append(head, fmt.Sprintf("  replicas: %d", w.Replicas), "  selector: {matchLabels: {app: "+w.Name+"}}")
		if w.Kind == StatefulSet {
			head = append(head, "  serviceName: "+w.Name, "  podManagementPolicy: Parallel")
		}
		head = append(head, "  template:")
	}
	name := map[bool]string{true: "  name: " + w.Name}[w.Kind == BarePod]
	annotations := []string{
		fmt.Sprintf("    sandbox.lifeboat.dev/start-seconds: %q", fmt.Sprint(w.Start)),
		fmt.Sprintf("    sandbox.lifeboat.dev/stop-seconds: %q", fmt.Sprint(w.Stop)),
	}
	if w.DoNotDisrupt {
		annotations = append(annotations, `    karpenter.sh/do-not-disrupt: "true"`)
	}
	body := slices.Concat([]string{"metadata:", name, "  labels: {app: " + w.Name + "}", "  annotations:"}, annotations, []string{
		"spec:", fmt.Sprintf("  terminationGracePeriodSeconds: %d", w.Grace), "  containers:", "  - name: main", "    image: main",
		"    resources: {requests: {cpu: 50m, memory: 32Mi}}",
	})
	if w.Spreads {
		body = append(body, "  nodeSelector: {karpenter.sh/nodepool: default}", "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: "+w.Name+"}}}]}}")
	}
	for _, line := range body {
		if line != "" {
			head = append(head, indent+line)
		}
	}
	text := strings.Join(head, "\n") + "\n"
	if w.Budget >= 0 {
		text += fmt.Sprintf("---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %s}\nspec:\n  maxUnavailable: %d\n  selector: {matchLabels: {app: %s}}\n", w.Name, w.Budget, w.Name)
	}
	return text
}
