package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/readiness"
)

// aim finds the targets, by their names or by asking, and the cloud that they
// are in.
func (s *session) aim(ctx context.Context, f interruptFlags, args []string, keyboard *bufio.Reader) (cloud, []drill.Target, error) {
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

// choose lists the spot nodes and asks for some of them.
func (s *session) choose(ctx context.Context, keyboard *bufio.Reader) (cloud, []drill.Target, error) {
	if !s.typing {
		return cloud{}, nil, usageErrorf("--interactive needs somebody to ask, and standard input is no terminal: name the nodes instead")
	}
	nodes, err := s.nodesOf(ctx)
	if err != nil {
		return cloud{}, nil, err
	}
	all, byID := ec2Nodes(nodes)
	if len(all) == 0 {
		return cloud{}, nil, fmt.Errorf("the cluster has no node that is an EC2 instance; check --context")
	}
	c, err := s.connectCloud(ctx, all[0].Zone)
	if err != nil {
		return cloud{}, nil, err
	}
	spot, err := drill.Spot(ctx, c.instances, all)
	if err != nil { // nobody may ask EC2, or a node's instance is gone already
		s.err.Printf("going by the nodes' labels, since EC2 does not say which are spot instances (%v)\n", err)
		spot = slices.DeleteFunc(all, func(t drill.Target) bool { return !readiness.IsSpot(byID[t.InstanceID]) })
	}
	if len(spot) == 0 {
		return cloud{}, nil, fmt.Errorf("no node of this cluster is a spot instance; name a node, and use --via queue")
	}
	s.list(spot, byID)
	answer, err := s.ask(ctx, keyboard, "Which? (such as 1 3-5, or all) ")
	if err != nil {
		return cloud{}, nil, err
	}
	picked, err := pick(answer, len(spot))
	if err != nil {
		return cloud{}, nil, usageErrorf("%w", err)
	}
	var chosen []drill.Target
	for _, i := range picked {
		chosen = append(chosen, spot[i])
	}
	return c, chosen, nil
}

// ec2Nodes are the nodes that are EC2 instances, by name, and by their ids.
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

// pick reads numbers and ranges, counted from 1, and returns them counted from
// 0, each once and in order.
func pick(answer string, count int) ([]int, error) {
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	if len(words) == 0 {
		return nil, fmt.Errorf("nothing was chosen, and nothing was done")
	}
	var picked []int
	for _, word := range words {
		first, last, err := span(word, count)
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

// span reads one number, or two with a hyphen between; all is every one.
func span(word string, count int) (int, int, error) {
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
		return 0, 0, fmt.Errorf("%q is no choice from 1 to %d: nothing was done", word, count)
	}
	return first, last, nil
}

// reopen finds, for each target, what an earlier drill announced and nobody has
// called off yet, so that the message is read as news of the same thing.
func (s *session) reopen(ctx context.Context, it *drilling) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var records v1alpha1.InterruptionList
	if err := c.list(ctx, "interruptions", &records); err != nil {
		return err
	}
	for i := range it.notices {
		n := &it.notices[i]
		open := openDrill(records.Items, n)
		if open == nil {
			return fmt.Errorf("no drill of kind %s is open for %s: `%s interrupt %s --kind %s` begins one",
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

// openDrill is the newest notice of a drill of the same kind about the same
// instance that is not withdrawn.
func openDrill(records []v1alpha1.Interruption, like *drill.Notice) *v1alpha1.Notice {
	var open *v1alpha1.Notice
	for i := range records {
		if records[i].Spec.InstanceID != like.Target.InstanceID || isCompleted(&records[i]) {
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
