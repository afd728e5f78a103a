package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
)

// adoption are the flags of `nodegroup adopt`.
type adoption struct {
	management, name string
	dryRun           bool
}

func newNodeGroupAdopt(s *session) *cobra.Command {
	var f adoption
	cmd := &cobra.Command{
		Use:   "adopt AUTO-SCALING-GROUP",
		Short: "Have Lifeboat look after an Auto Scaling group that is there",
		Long: `Have Lifeboat look after an Auto Scaling group that is there: a NodeGroup is
made for it, its hooks are answered from then on, and what is wrong is said.

Nothing is changed at AWS unless --management says so: with Hooks, the two hooks
are put where they are missing; with All, the whole group is kept as it is now,
and as the NodeGroup says later.

The group is read with the AWS credentials of the environment. Where there are
none, the NodeGroup has its name alone, and hooks of Lifeboat's own names; it can
only observe then. So it does where the group's hooks may not be read, or with
All its warm pool, since what is not declared would be put anew, or deleted.`,
		Example: `  lifeboat nodegroup adopt nodes-eu-west-1a.prod.example.com
  lifeboat nodegroup adopt workers --management Hooks
  lifeboat nodegroup adopt workers --management All --dry-run -o yaml > workers.yaml`,
		Args:        arguments(1, 1, "the name of one Auto Scaling group"),
		Annotations: map[string]string{command.TakesYAML: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.adopt(cmd.Context(), f, args[0])
		},
	}
	cmd.Flags().StringVar(&f.management, "management", string(v1alpha1.ManageNothing), "how much is changed at AWS: Observe, Hooks or All")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the NodeGroup (default: as kOps, EKS or eksctl call the group, else its own name)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show the NodeGroup: as YAML, or with -o json as JSON")
	return cmd
}

func (f adoption) check() error {
	all := []string{string(v1alpha1.ManageNothing), string(v1alpha1.ManageHooks), string(v1alpha1.ManageAll)}
	if !slices.Contains(all, f.management) {
		return usageErrorf("unknown --management %q: write Observe, Hooks or All", f.management)
	}
	return nil
}

func (s *session) adopt(ctx context.Context, f adoption, group string) error {
	o, err := s.observeGroup(ctx, group)
	if err != nil && (errors.Is(err, errNoGroup) || f.management != string(v1alpha1.ManageNothing)) {
		return fmt.Errorf("reading Auto Scaling group %s: %w", group, err)
	}
	if err != nil {
		o = nodegroup.Observed{Name: group}
		s.err.Printf("%s The group was not read: %v.\nIts NodeGroup has hooks of Lifeboat's own names; if the group has others, name them in spec.hooks.\n", s.err.Paint(terminal.Warn, "Note:"), err)
	}
	g, notes := nodegroup.Adopt(o, v1alpha1.Management(f.management))
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
		return s.writeObject(manifest(g))
	}
	return s.createNodeGroup(ctx, g, o)
}

// manifest is a NodeGroup without a status.
func manifest(g *v1alpha1.NodeGroup) any {
	return struct {
		APIVersion string                 `json:"apiVersion"`
		Kind       string                 `json:"kind"`
		Metadata   map[string]string      `json:"metadata"`
		Spec       v1alpha1.NodeGroupSpec `json:"spec"`
	}{v1alpha1.GroupVersion.String(), g.Kind, map[string]string{"name": g.Name}, g.Spec}
}

func (s *session) createNodeGroup(ctx context.Context, g *v1alpha1.NodeGroup, o nodegroup.Observed) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var all v1alpha1.NodeGroupList
	if err := c.list(ctx, "node groups", &all); err != nil {
		return err
	}
	for i := range all.Items {
		if other := &all.Items[i]; nodegroup.Name(other) == nodegroup.Name(g) {
			return fmt.Errorf("NodeGroup %s stands for Auto Scaling group %s already: `%s nodegroup describe %s` shows it", other.Name, nodegroup.Name(g), s.name, other.Name)
		}
	}
	writing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = c.Create(writing, g)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("there is a NodeGroup %s already, for another group: give this one another name with --name", g.Name)
	case err != nil:
		return fmt.Errorf("creating node group %s: %w", g.Name, err)
	}
	if s.flags.Output != command.OutputText {
		tidy(g)
		return s.writeObject(g)
	}
	s.out.Printf("Lifeboat looks after Auto Scaling group %s as NodeGroup %s (management %s).\n", nodegroup.Name(g), g.Name, g.Spec.Management)
	if broken := worst(g, o); broken != "" {
		s.out.Printf("%s %s\n", s.out.Paint(terminal.Bad, "To mend:"), broken)
	}
	s.out.Printf("`%s nodegroup describe %s` shows how it stands.\n", s.name, g.Name)
	return nil
}

// worst is what is broken most of a group as it was read.
func worst(g *v1alpha1.NodeGroup, o nodegroup.Observed) string {
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
