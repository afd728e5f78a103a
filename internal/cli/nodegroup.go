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

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

const nodeGroupHelp = `Show and adopt node groups: Auto Scaling groups with their warm pools and
lifecycle hooks. Lifeboat answers the hooks of their launches and terminations.

Adopting a group changes nothing at AWS unless --management says so.`

func newNodeGroup(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:     "nodegroup",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Show and adopt Auto Scaling groups",
		Long:    nodeGroupHelp,
		Example: `  # List all node groups, and show the details of one
  lifeboat nodegroup list
  lifeboat nodegroup describe workers

  # Adopt a group that kOps created, and change nothing in it
  lifeboat nodegroup adopt nodes-eu-west-1a.prod.example.com`,
	})
	cmd.AddCommand(newNodeGroupList(s), newNodeGroupDescribe(s), newNodeGroupAdopt(s))
	return cmd
}

func newNodeGroupList(s *session) *cobra.Command {
	return command.ObjectOutputs(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List node groups and their state",
		Long: `List node groups with the number of instances in each state and the number that
a lifecycle hook holds. For each group that is not ready, show the reason.`,
		Example: `  lifeboat nodegroup list
  lifeboat nodegroup list -o json | jq -r '.items[] | select(.status.pendingActions > 0) | .metadata.name'`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.listNodeGroups(cmd.Context())
		},
	})
}

func (s *session) listNodeGroups(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var all v1beta1.NodeGroupList
	if err := c.list(ctx, "node groups", &all); err != nil {
		return err
	}
	slices.SortFunc(all.Items, func(a, b v1beta1.NodeGroup) int { return strings.Compare(a.Name, b.Name) })
	if s.flags.Output != command.OutputText {
		all.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeGroupList"}
		var names []string
		for i := range all.Items {
			prepareOutput(&all.Items[i])
			names = append(names, all.Items[i].Name)
		}
		return s.writeObject(&all, names...)
	}
	if len(all.Items) == 0 {
		s.err.Printf("no node groups: run `%s nodegroup adopt AUTO-SCALING-GROUP` to adopt one\n", s.name)
		return nil
	}
	table := terminal.NewTable("NAME", "GROUP", "MANAGEMENT", "READY", "DESIRED", "IN SERVICE", "JOINING", "WARM", "LEAVING", "HELD")
	for i := range all.Items {
		g := &all.Items[i]
		n := g.Status.Instances
		ready, style, why := readyCondition(g)
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

// readyCondition returns the condition Ready, with a style and the message.
func readyCondition(g *v1beta1.NodeGroup) (ready string, style terminal.Style, why string) {
	c := meta.FindStatusCondition(g.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case c == nil:
		return string(metav1.ConditionUnknown), terminal.Warn, "the controller has not reconciled it: check that lifeboatd runs (kubectl -n lifeboat-system get pods)"
	case c.Status == metav1.ConditionTrue:
		return string(c.Status), terminal.Good, c.Message
	}
	return string(c.Status), terminal.Bad, c.Message
}

// prepareOutput sets the type and removes the managed fields, for output.
func prepareOutput(g *v1beta1.NodeGroup) {
	g.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "NodeGroup"}
	g.ManagedFields = nil
}

// writeObject writes a NodeGroup or a list of them as JSON or YAML, or only the names.
func (s *session) writeObject(value any, names ...string) error {
	switch s.flags.Output {
	case command.OutputName:
		for _, name := range names {
			s.out.Printf("nodegroup.%s/%s\n", v1beta1.GroupVersion.Group, name)
		}
		return nil
	case command.OutputJSON:
		return s.writeJSON(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	s.out.Printf("%s", text)
	return nil
}

// nodeGroup reads a NodeGroup by its name or by the name of its Auto Scaling
// group.
func (s *session) nodeGroup(ctx context.Context, c cluster, name string) (*v1beta1.NodeGroup, error) {
	reading, cancel := c.limit(ctx)
	defer cancel()
	var g v1beta1.NodeGroup
	err := c.Get(reading, client.ObjectKey{Name: name}, &g)
	if err == nil {
		return &g, nil
	}
	// A name with a slash cannot be an object's name, but can be a group's.
	if !apierrors.IsNotFound(err) && !strings.Contains(name, "/") || command.IsNotInstalled(err) {
		return nil, fmt.Errorf("reading node group %s: %w", name, err)
	}
	var all v1beta1.NodeGroupList
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
		return nil, fmt.Errorf("node group %s not found: the cluster has none; run `%s nodegroup adopt %s` to adopt the Auto Scaling group of that name", name, s.name, name)
	}
	slices.Sort(names)
	return nil, nodeGroupNotFound.Errorf("node group %s not found; the existing ones are: %s", name, strings.Join(names, ", "))
}

// errNoGroup: AWS has no Auto Scaling group of this name.
var errNoGroup = errors.New("no such Auto Scaling group")

// observeAWSGroup reads a group from AWS.
func (s *session) observeAWSGroup(ctx context.Context, name string) (nodegroup.Observed, error) {
	cfg, _, err := s.awsConfig(ctx)
	if err != nil {
		return nodegroup.Observed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o, err := nodegroup.NewCommandAPI(cfg).Observe(ctx, name, s.now())
	if err != nil {
		return o, awsError{err}
	}
	if !o.Exists {
		return o, awsError{fmt.Errorf("%w: %s, in region %s; check the name and AWS_REGION: `aws autoscaling describe-auto-scaling-groups` lists the groups", errNoGroup, name, cfg.Region)}
	}
	return o, nil
}
