package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// adoptFlags holds the flags of `nodegroup adopt`.
type adoptFlags struct {
	management, name string
	dryRun           bool
}

func newNodeGroupAdopt(s *session) *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{
		Use:   "adopt AUTO-SCALING-GROUP",
		Short: "Adopt an existing Auto Scaling group",
		Long: `Adopt an existing Auto Scaling group: create a NodeGroup for it. From then on
Lifeboat answers its hooks and reports its problems.

Nothing changes at AWS unless --management says so. With Hooks, Lifeboat creates
the two hooks if they are missing. With All, Lifeboat keeps the whole group as it
is now, and later as the NodeGroup declares it.

The command reads the group with the AWS credentials of the environment. Without
credentials the NodeGroup contains only the name and Lifeboat's own hook names, and
its management must be Observe. The same applies if the credentials may not read
the hooks, or, with All, the warm pool: otherwise Lifeboat would create again or
delete what the NodeGroup does not declare.`,
		Example: `  lifeboat nodegroup adopt nodes-eu-west-1a.prod.example.com
  lifeboat nodegroup adopt workers --management Hooks
  lifeboat nodegroup adopt workers --management All --dry-run -o yaml > workers.yaml`,
		Args: arguments(1, 1, "the name of one Auto Scaling group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.adopt(cmd.Context(), f, args[0])
		},
	}
	command.ObjectOutputs(cmd)
	cmd.Flags().StringVar(&f.management, "management", string(v1beta1.ManageNothing), "how much Lifeboat changes at AWS: Observe, Hooks or All")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the NodeGroup (default: the group's name in kOps, EKS or eksctl, otherwise its own name)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the NodeGroup as YAML, or as -o says, and create nothing")
	return cmd
}

func (f adoptFlags) check() error {
	all := []string{string(v1beta1.ManageNothing), string(v1beta1.ManageHooks), string(v1beta1.ManageAll)}
	if !slices.Contains(all, f.management) {
		return usageErrorf("unknown --management %q: write Observe, Hooks or All", f.management)
	}
	return nil
}

func (s *session) adopt(ctx context.Context, f adoptFlags, group string) error {
	o, err := s.observeGroup(ctx, group)
	if err != nil && (errors.Is(err, errNoGroup) || f.management != string(v1beta1.ManageNothing)) {
		return fmt.Errorf("reading Auto Scaling group %s: %w", group, err)
	}
	if err != nil {
		o = nodegroup.Observed{Name: group}
		s.err.Printf("%s The group could not be read: %v.\nThe NodeGroup uses Lifeboat's own hook names. If the group's hooks have other names, set them in spec.hooks.\n", s.err.Paint(terminal.Warn, "Note:"), err)
	}
	g, notes := nodegroup.Adopt(o, v1beta1.Management(f.management))
	if f.name != "" {
		g.Name, g.Spec.AutoScalingGroup = f.name, group
	}
	for _, note := range notes {
		s.err.Printf("%s %s.\n", s.err.Paint(terminal.Warn, "Note:"), note)
	}
	if f.dryRun {
		if s.flags.Output == command.OutputText {
			s.flags.Output = command.OutputYAML
		}
		return s.writeObject(manifest(g), g.Name)
	}
	return s.createNodeGroup(ctx, g, o)
}

// manifest returns a NodeGroup without its status.
func manifest(g *v1beta1.NodeGroup) any {
	return struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Metadata   map[string]string     `json:"metadata"`
		Spec       v1beta1.NodeGroupSpec `json:"spec"`
	}{v1beta1.GroupVersion.String(), g.Kind, map[string]string{"name": g.Name}, g.Spec}
}

func (s *session) createNodeGroup(ctx context.Context, g *v1beta1.NodeGroup, o nodegroup.Observed) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var all v1beta1.NodeGroupList
	if err := c.list(ctx, "node groups", &all); err != nil {
		return err
	}
	for i := range all.Items {
		if other := &all.Items[i]; nodegroup.Name(other) == nodegroup.Name(g) {
			return fmt.Errorf("adopting Auto Scaling group %s: it already has NodeGroup %s; run `%s nodegroup describe %s` to see it", nodegroup.Name(g), other.Name, s.name, other.Name)
		}
	}
	writing, cancel := c.limit(ctx)
	defer cancel()
	err = c.Create(writing, g)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("a NodeGroup %s already exists for another group: choose another name with --name", g.Name)
	case err != nil:
		return fmt.Errorf("creating node group %s: %w", g.Name, err)
	}
	if s.flags.Output != command.OutputText {
		prepareOutput(g)
		return s.writeObject(g, g.Name)
	}
	s.out.Printf("Adopted Auto Scaling group %s as NodeGroup %s (management %s).\n", nodegroup.Name(g), g.Name, g.Spec.Management)
	if broken := firstBroken(g, o); broken != "" {
		s.out.Printf("%s %s\n", s.out.Paint(terminal.Bad, "To fix:"), broken)
	}
	s.out.Printf("Run `%s nodegroup describe %s` to see its state.\n", s.name, g.Name)
	return nil
}

// firstBroken returns the first broken finding of a group, and its fix.
func firstBroken(g *v1beta1.NodeGroup, o nodegroup.Observed) string {
	if !o.Exists {
		return ""
	}
	for _, f := range nodegroup.Diff(nodegroup.Want(g, ""), o, nodegroup.History{}).Findings {
		if f.Severity == finding.Broken {
			return f.Problem + ". What to do: " + f.Fix
		}
	}
	return ""
}
