package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/workloads"
)

// zoneLabel is the well-known label of a node's zone.
const zoneLabel = corev1.LabelTopologyZone

// plannedZone is the output of `plan --zone` and `plan --spot`.
type plannedZone struct {
	Zone string `json:"zone,omitempty"`
	Spot bool   `json:"spot"`
	// Fits is true if every pod of every node leaves with its whole grace period.
	Fits  bool      `json:"fits"`
	Nodes []planned `json:"nodes"`
}

// planMany predicts the loss of all selected nodes at once.
func (s *session) planMany(ctx context.Context, f planFlags) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	selected := f.among(nodes)
	if len(selected) == 0 {
		return fmt.Errorf("no node is %s: kubectl get nodes -L %s shows the zones", f.selection(), zoneLabel)
	}
	if f.kind == "" {
		f.kind = kindSpot // open interruptions of single nodes do not count
	}
	s.warnOfSkew(ctx, c)
	result := plannedZone{Zone: f.zone, Spot: f.spot, Fits: true}
	now := s.now()
	for _, node := range selected {
		p, err := s.planOne(ctx, c, f, node.Name)
		if err != nil {
			return fmt.Errorf("planning node %s: %w", node.Name, err)
		}
		result.Fits = result.Fits && p.Fits
		result.Nodes = append(result.Nodes, p)
	}
	if s.isJSON() {
		err = s.writeJSON(result)
	} else {
		result.write(s.out, f.selection(), now)
	}
	if err == nil && !result.Fits {
		return exitError{Code: ExitDoesNotFit}
	}
	return err
}

// among returns the selected nodes that are ready, by name.
func (f planFlags) among(nodes []corev1.Node) []corev1.Node {
	selected := slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool {
		return f.zone != "" && zoneOf(&n) != f.zone || f.spot && !workloads.IsSpot(&n)
	})
	slices.SortFunc(selected, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return selected
}

// zoneOf returns the zone of a node: that of its label, or else of its provider ID.
func zoneOf(node *corev1.Node) string {
	if zone := node.Labels[zoneLabel]; zone != "" {
		return zone
	}
	_, zone := instanceOf(node)
	return zone
}

// selection describes the flags, as in "a spot node in zone us-east-1b".
func (f planFlags) selection() string {
	text := "a node"
	if f.spot {
		text = "a spot node (by its labels)"
	}
	if f.zone != "" {
		text += " in zone " + f.zone
	}
	return text
}

// write prints the pods that cannot leave in time, and one line about the others.
func (z plannedZone) write(s terminal.Stream, selection string, now time.Time) {
	pods, lost, stays := 0, 0, 0
	table := terminal.NewTable("POD", "NODE", "STEP", "GONE BY", "GRACE")
	for _, p := range z.Nodes {
		var ahead time.Duration
		if p.Begins != nil {
			ahead = p.Begins.Sub(now)
		}
		for _, pod := range p.Pods {
			switch {
			case pod.Fits && pod.AskedInSeconds == nil:
				stays++
				continue
			case pod.Fits:
				pods++
				continue
			}
			pods++
			lost++
			style := pod.style()
			table.Row(
				terminal.Cell{Text: pod.Namespace + "/" + pod.Name, Style: style}, terminal.Cell{Text: p.Node, Style: terminal.Plain},
				terminal.Cell{Text: string(pod.Step), Style: style}, terminal.Cell{Text: formatOffset(pod.GoneInSeconds, ahead)}, terminal.Cell{Text: pod.grace()},
			)
			table.Under(terminal.Cell{Text: pod.Reason, Style: terminal.Dim})
			if pod.Fix != "" {
				table.Under(terminal.Cell{Text: pod.Fix, Style: terminal.Dim})
			}
		}
	}
	s.Printf("%s, if a notice of kind %s arrived now for each node that is %s\n", counted(len(z.Nodes), "node"), z.Nodes[0].Kind, selection)
	if lost > 0 {
		s.Printf("\n")
		table.Write(s)
	}
	s.Printf("\n%d of %s leave with their whole grace period; %d stay, such as those of DaemonSets\n", pods-lost, counted(pods, "pod"), stays)
}
