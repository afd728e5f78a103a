package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox"
)

const mostNodes = 50

func newSandboxUp(s *session) *cobra.Command {
	var f superviseFlags
	var nodes int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a sandbox up, and leave it running",
		Long: `Bring a sandbox up, and leave it running. The first time it builds Kubernetes,
which takes some minutes; after that it takes seconds.

Whatever instance is launched in its EC2 becomes a node; --nodes launches spot
instances to begin with.`,
		Example: `  lifeboat sandbox up --nodes 3
  lifeboat sandbox up --name second --boot-delay 30s
  eval "$(lifeboat sandbox env)" && kubectl get nodes`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if nodes < 0 || nodes > mostNodes {
				return usageErrorf("--nodes %d is out of range: 0 to %d", nodes, mostNodes)
			}
			return s.up(cmd.Context(), f, nodes)
		},
	}
	f.add(s, cmd)
	cmd.Flags().IntVar(&nodes, "nodes", 0, "how many spot instances to launch as nodes")
	return cmd
}

func (s *session) up(ctx context.Context, f superviseFlags, nodes int) error {
	self, err := f.command(s)
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	name := s.nameOf(f.name)
	if status, err := s.sandboxes.inspect(name); err == nil && status.Running {
		return fmt.Errorf("the sandbox %s is up already; `%s sandbox status` shows it, `%s sandbox down` takes it down", name, s.name, s.name)
	} else if err != nil && !errors.Is(err, sandbox.ErrNotRunning) {
		return err
	}
	options := f.options(s)
	render, finish := s.steps()
	options.Progress = render
	state, err := s.sandboxes.start(ctx, options, self)
	finish()
	if err != nil {
		return err
	}
	if nodes > 0 {
		s.flags.sandbox, s.flags.kubeconfig, s.flags.context = name, "", ""
		if err := s.launch(ctx, nodes); err != nil {
			return fmt.Errorf("the sandbox %s is up, but without all its nodes: %w", name, err)
		}
	}
	if s.isJSON() {
		return s.writeJSON(state)
	}
	s.greet(state)
	return nil
}

// greet says how to use a sandbox that has come up.
func (s *session) greet(state sandbox.State) {
	flag := ""
	if state.Name != defaultSandbox {
		flag = " --name " + state.Name
	}
	s.out.Printf("\n%s is up. To point kubectl and the AWS CLI at it:\n\n", s.out.Paint(terminal.Bold, "the sandbox "+state.Name))
	for line := range strings.Lines(state.Exports()) {
		s.out.Printf("  %s", line)
	}
	s.out.Printf("\nor: eval \"$(%s sandbox env%s)\"\n", s.name, flag)
	s.out.Printf("To take it down: %s sandbox down%s\n", s.name, flag)
}
