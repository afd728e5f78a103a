package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/workloads"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// selectTargets selects the targets, by name or interactively, and connects to their
// cloud.
func (s *session) selectTargets(ctx context.Context, f interruptFlags, args []string, keyboard *bufio.Reader) (cloud, []drill.Target, error) {
	if f.interactive {
		return s.choose(ctx, keyboard)
	}
	targets, err := s.targets(ctx, args)
	if err != nil {
		return cloud{}, nil, err
	}
	c, err := s.connectCloud(ctx, targets[0].Zone)
	return c, targets, err
}

// choose lists the spot nodes and asks which ones to interrupt.
func (s *session) choose(ctx context.Context, keyboard *bufio.Reader) (cloud, []drill.Target, error) {
	if !s.interactive {
		return cloud{}, nil, usageErrorf("--interactive needs a terminal, and standard input is none: name the nodes as arguments")
	}
	nodes, err := s.nodesOf(ctx)
	if err != nil {
		return cloud{}, nil, err
	}
	all, byID := ec2Nodes(nodes)
	if len(all) == 0 {
		return cloud{}, nil, fmt.Errorf("the cluster has no node on EC2; check --context")
	}
	c, err := s.connectCloud(ctx, all[0].Zone)
	if err != nil {
		return cloud{}, nil, err
	}
	spot, err := drill.Spot(ctx, c.instances, all)
	if err != nil { // a permission is missing, or a node's instance is gone already
		s.err.Printf("EC2 could not be asked which instances are spot (%v); using the node labels\n", err)
		spot = slices.DeleteFunc(all, func(t drill.Target) bool { return !workloads.IsSpot(byID[t.InstanceID]) })
	}
	if len(spot) == 0 {
		return cloud{}, nil, fmt.Errorf("no node of this cluster is a spot instance; name a node and add --via queue")
	}
	s.list(spot, byID)
	answer, err := s.ask(ctx, keyboard, "Which? (such as 1 3-5, or all) ")
	if err != nil {
		return cloud{}, nil, err
	}
	picked, err := parseChoice(answer, len(spot))
	if err != nil {
		return cloud{}, nil, usageErrorf("%w", err)
	}
	var chosen []drill.Target
	for _, i := range picked {
		chosen = append(chosen, spot[i])
	}
	return c, chosen, nil
}

// ec2Nodes returns the nodes that are EC2 instances, sorted by name, and a map
// by instance id.
func ec2Nodes(nodes []corev1.Node) ([]drill.Target, map[string]*corev1.Node) {
	var all []drill.Target
	byID := map[string]*corev1.Node{}
	for i := range nodes {
		if t, err := targetOf(&nodes[i]); err == nil {
			all = append(all, t)
			byID[t.InstanceID] = &nodes[i]
		}
	}
	slices.SortFunc(all, func(a, b drill.Target) int { return strings.Compare(a.Node, b.Node) })
	return all, byID
}

func (s *session) list(spot []drill.Target, byID map[string]*corev1.Node) {
	table := terminal.NewTable("", "NODE", "INSTANCE", "ZONE", "TYPE", "AGE")
	for i, t := range spot {
		node := byID[t.InstanceID]
		table.Row(
			terminal.Cell{Text: strconv.Itoa(i + 1)}, terminal.Cell{Text: t.Node}, terminal.Cell{Text: t.InstanceID}, terminal.Cell{Text: t.Zone},
			terminal.Cell{Text: node.Labels[corev1.LabelInstanceTypeStable]},
			terminal.Cell{Text: terminal.Duration(s.now().Sub(node.CreationTimestamp.Time))},
		)
	}
	table.Write(s.err)
}

// parseChoice parses numbers and ranges, counted from 1. It returns them counted from
// 0, each once and in order.
func parseChoice(answer string, count int) ([]int, error) {
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	if len(words) == 0 {
		return nil, fmt.Errorf("nothing was chosen, so nothing was done")
	}
	var picked []int
	for _, word := range words {
		first, last, err := parseRange(word, count)
		if err != nil {
			return nil, err
		}
		for i := first; i <= last; i++ {
			picked = append(picked, i-1)
		}
	}
	slices.Sort(picked)
	return slices.Compact(picked), nil
}

// parseRange parses a number, a range such as 3-5, or all.
func parseRange(word string, count int) (int, int, error) {
	if strings.EqualFold(word, "all") {
		return 1, count, nil
	}
	from, to, found := strings.Cut(word, "-")
	if !found {
		to = from
	}
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err != nil || err2 != nil || first < 1 || last > count || first > last {
		return 0, 0, fmt.Errorf("%q is not a number or range from 1 to %d, so nothing was done", word, count)
	}
	return first, last, nil
}

// continueDrills finds, for each target, the open announcement of an earlier drill. The
// message then counts as an update of that announcement.
func (s *session) continueDrills(ctx context.Context, it *drilling) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var records v1beta1.InterruptionList
	if err := c.list(ctx, "interruptions", &records); err != nil {
		return err
	}
	for i := range it.notices {
		n := &it.notices[i]
		open := openDrill(records.Items, n)
		if open == nil {
			return fmt.Errorf("no drill of kind %s is open for %s: run `%s interrupt %s --kind %s` to start one",
				n.Kind, n.Target, s.name, n.Target.InstanceID, it.flags.of.Short)
		}
		n.Closed, n.Subject, n.Code = true, open.Subject, open.EventTypeCode
		if _, id, found := strings.Cut(open.Subject, open.EventTypeCode+"_"); found {
			n.Drill = id
		}
		if open.Deadline != nil {
			n.Begins = open.Deadline.Time.Time
		}
	}
	it.drill = it.notices[0].Drill
	return nil
}

// openDrill returns the newest drill notice of the same kind and instance that
// is not withdrawn, or nil.
func openDrill(records []v1beta1.Interruption, like *drill.Notice) *v1beta1.Notice {
	var open *v1beta1.Notice
	for i := range records {
		if records[i].Spec.InstanceID != like.Target.InstanceID || record.IsCompleted(&records[i]) {
			continue
		}
		for j := range records[i].Spec.Notices {
			n := &records[i].Spec.Notices[j]
			if n.Drill && !n.Withdrawn && n.Subject != "" && n.Kind == like.Kind && n.Source == notice.SourceQueue &&
				(like.Code == "" || like.Code == n.EventTypeCode) {
				open = n
			}
		}
	}
	return open
}
