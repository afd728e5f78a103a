package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
)

const nodeGroupHelp = `Show and adopt node groups: Auto Scaling groups with their warm pools and
lifecycle hooks, whose launches and terminations Lifeboat answers.

Adopting a group changes nothing at AWS unless --management says so.`

func newNodeGroup(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:     "nodegroup",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Show and adopt Auto Scaling groups with warm pools and hooks",
		Long:    nodeGroupHelp,
		Example: `  # All node groups, and what is wrong with one
  lifeboat nodegroup list
  lifeboat nodegroup describe workers

  # Look after a group that kOps made, and change nothing of it
  lifeboat nodegroup adopt nodes-eu-west-1a.prod.example.com`,
	})
	cmd.AddCommand(newNodeGroupList(s), newNodeGroupDescribe(s), newNodeGroupAdopt(s))
	return cmd
}

func newNodeGroupList(s *session) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List node groups and how they stand",
		Long: `List node groups, how many instances each has where, how many of them a hook
holds, and under each that is not ready, why.`,
		Example: `  lifeboat nodegroup list
  lifeboat nodegroup list -o json | jq -r '.items[] | select(.status.pendingActions > 0) | .metadata.name'`,
		Args:        arguments(0, 0, "no arguments"),
		Annotations: map[string]string{command.TakesYAML: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.listNodeGroups(cmd.Context())
		},
	}
}

func (s *session) listNodeGroups(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var all v1alpha1.NodeGroupList
	if err := c.list(ctx, "node groups", &all); err != nil {
		return err
	}
	slices.SortFunc(all.Items, func(a, b v1alpha1.NodeGroup) int { return strings.Compare(a.Name, b.Name) })
	if s.flags.Output != command.OutputText {
		all.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeGroupList"}
		for i := range all.Items {
			tidy(&all.Items[i])
		}
		return s.writeObject(&all)
	}
	if len(all.Items) == 0 {
		s.err.Printf("no node groups: `%s nodegroup adopt AUTO-SCALING-GROUP` has Lifeboat look after one\n", s.name)
		return nil
	}
	table := terminal.NewTable("NAME", "GROUP", "MANAGEMENT", "READY", "DESIRED", "IN SERVICE", "JOINING", "WARM", "LEAVING", "HELD")
	for i := range all.Items {
		g := &all.Items[i]
		n := g.Status.Instances
		ready, style, why := standsReady(g)
		cells := []terminal.Cell{{Text: g.Name, Style: terminal.Bold}, {Text: nodegroup.Name(g)}, {Text: string(g.Spec.Management)}, {Text: ready, Style: style}}
		for _, count := range []int32{g.Status.Desired, n.InService, n.Joining, n.Warming + n.Warm, n.Leaving, g.Status.PendingActions} {
			cells = append(cells, terminal.Cell{Text: fmt.Sprint(count)})
		}
		table.Row(cells...)
		if ready != string(metav1.ConditionTrue) {
			table.Under(terminal.Cell{Text: why, Style: style})
		}
	}
	table.Write(s.out)
	return nil
}

// standsReady is what the condition Ready says.
func standsReady(g *v1alpha1.NodeGroup) (ready string, style terminal.Style, why string) {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return string(metav1.ConditionUnknown), terminal.Warn, "the controller has not looked at it: see that lifeboatd runs (kubectl -n lifeboat-system get pods)"
	case c.Status == metav1.ConditionTrue:
		return string(c.Status), terminal.Good, c.Message
	}
	return string(c.Status), terminal.Bad, c.Message
}

// tidy takes away what says nothing to readers.
func tidy(g *v1alpha1.NodeGroup) {
	g.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeGroup"}
	g.ManagedFields = nil
}

// writeObject writes one value as JSON or YAML.
func (s *session) writeObject(value any) error {
	if s.flags.Output != command.OutputYAML {
		return s.writeJSON(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	s.out.Printf("%s", text)
	return nil
}

// nodeGroup reads one, by its own name or by that of its Auto Scaling group.
func (s *session) nodeGroup(ctx context.Context, c cluster, name string) (*v1alpha1.NodeGroup, error) {
	reading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var g v1alpha1.NodeGroup
	err := c.Get(reading, client.ObjectKey{Name: name}, &g)
	if err == nil {
		return &g, nil
	}
	// A name with a slash is none that an object can have, but a group.
	if !apierrors.IsNotFound(err) && !strings.Contains(name, "/") || command.IsNotInstalled(err) {
		return nil, fmt.Errorf("reading node group %s: %w", name, err)
	}
	var all v1alpha1.NodeGroupList
	if err := c.list(ctx, "node groups", &all); err != nil {
		return nil, err
	}
	var names []string
	for i := range all.Items {
		if nodegroup.Name(&all.Items[i]) == name {
			return &all.Items[i], nil
		}
		names = append(names, all.Items[i].Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no node group %s, nor any other; `%s nodegroup adopt %s` has Lifeboat look after the Auto Scaling group of that name", name, s.name, name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("there is no node group %s; there are: %s", name, strings.Join(names, ", "))
}

// errNoGroup says that AWS has no Auto Scaling group of a name.
var errNoGroup = errors.New("there is no Auto Scaling group of this name")

// observeAWSGroup reads a group at AWS.
func (s *session) observeAWSGroup(ctx context.Context, name string) (nodegroup.Observed, error) {
	cfg, _, err := s.awsConfig(ctx)
	if err != nil {
		return nodegroup.Observed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o, err := nodegroup.NewAPI(cfg).Observe(ctx, name, s.now())
	if err != nil {
		return o, awsError{err}
	}
	if !o.Exists {
		return o, awsError{fmt.Errorf("%w: %s, in region %s; check the name and AWS_REGION: `aws autoscaling describe-auto-scaling-groups` lists those there are", errNoGroup, name, cfg.Region)}
	}
	return o, nil
}
