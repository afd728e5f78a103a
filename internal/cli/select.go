package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// completionTime limits how long a shell waits for the names of nodes.
const completionTime = 3 * time.Second

// selection selects nodes other than by name.
type selection struct {
	// labels is a label selector of nodes.
	labels string
	// policy and allWaiting select nodes that wait for an approval.
	policy     string
	allWaiting bool
}

func (f *selection) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.labels, "selector", "l", "", "label selector of nodes, such as pool=web")
}

func (f *selection) isSet() bool { return f.labels != "" || f.policy != "" || f.allWaiting }

// check returns an error unless there are either arguments or a selection.
func (f *selection) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.isSet() && len(args) > 0:
		return usageErrorf("%s takes either nodes or a selection: remove one of them", cmd.CommandPath())
	case !f.isSet() && len(args) == 0:
		return usageErrorf("%s takes at least one node or instance, or -l SELECTOR; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	if _, err := labels.Parse(f.labels); err != nil {
		return usageErrorf("invalid selector -l %s: %w", f.labels, err)
	}
	return nil
}

// interruptionsOf returns the names of the nodes with an interruption that the selection contains.
func (f *selection) interruptionsOf(ctx context.Context, c cluster) ([]string, error) {
	nodes, err := c.selectedNodes(ctx, f.labels)
	if err != nil {
		return nil, err
	}
	var all v1beta1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); err != nil {
		return nil, err
	}
	waiting := f.policy != "" || f.allWaiting
	var names []string
	for i := range all.Items {
		in := &all.Items[i]
		switch {
		case notice.Finished(in), f.policy != "" && !isGovernedBy(in, f.policy),
			f.labels != "" && !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == record.NodeName(in) }):
			continue
		}
		if _, awaits := record.AwaitsApproval(in); awaits || !waiting {
			names = append(names, in.Spec.InstanceID)
		}
	}
	slices.Sort(names)
	if len(names) == 0 && waiting {
		return nil, fmt.Errorf("no selected interruption waits for an approval; `lifeboat status` lists what waits")
	} else if len(names) == 0 {
		return nil, fmt.Errorf("no node with the labels %s has an interruption in progress; `lifeboat status` lists what is in progress", f.labels)
	}
	return names, nil
}

func isGovernedBy(in *v1beta1.Interruption, policy string) bool {
	d := in.Status.Decision
	return d != nil && (d.Policy == policy || d.EffectivePolicy == policy)
}

// selectedNodes returns the nodes that match a label selector.
func (c cluster) selectedNodes(ctx context.Context, selector string) ([]corev1.Node, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, usageErrorf("invalid selector -l %s: %w", selector, err)
	}
	var all corev1.NodeList
	if err := c.list(ctx, "nodes", &all, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, err
	}
	return all.Items, nil
}

// completeNodes completes the names of nodes, those with an interruption first.
func (s *session) completeNodes(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all v1beta1.InterruptionList
	_ = c.list(ctx, "interruptions", &all) // a cluster without Lifeboat has nodes as well
	nodes, err := c.nodes(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	interrupted := map[string]string{}
	for i := range all.Items {
		if in := &all.Items[i]; !notice.Finished(in) {
			interrupted[record.NodeName(in)] = string(in.Status.Phase)
		}
	}
	var first, rest []cobra.Completion
	for _, n := range nodes {
		if slices.Contains(args, n.Name) {
			continue
		}
		if phase, found := interrupted[n.Name]; found {
			first = append(first, cobra.CompletionWithDesc(n.Name, phase))
			continue
		}
		rest = append(rest, n.Name)
	}
	return append(first, rest...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeNodeNames gives commands whose arguments are nodes the completion of node names.
func (s *session) completeNodeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if command.TakesNodes(cmd) {
			cmd.ValidArgsFunction = s.completeNodes
		}
	}
}
