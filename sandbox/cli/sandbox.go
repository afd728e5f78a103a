package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

// sandboxes are the operations of the commands; tests replace them.
type sandboxes struct {
	start     func(ctx context.Context, o sandbox.Options, self []string) (sandbox.State, error)
	supervise func(ctx context.Context, o sandbox.Options) error
	inspect   func(name string) (sandbox.Status, error)
	list      func() ([]sandbox.Status, error)
	stop      func(ctx context.Context, name string, progress func(sandbox.Step)) error
	play      func(ctx context.Context, sc *scenario.Scenario, o scenario.Options) (*scenario.Report, error)
}

func realSandboxes() sandboxes {
	return sandboxes{
		start:     sandbox.Start,
		supervise: sandbox.Supervise,
		inspect:   sandbox.Inspect,
		list:      sandbox.List,
		stop:      sandbox.Stop,
		play:      scenario.Run,
	}
}

func newSandbox(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "sandbox",
		Short: "Lifeboat on this machine: a real control plane, simulated nodes, an AWS emulator",
		Long: `Lifeboat on this machine, with no cloud account and no containers: a real
Kubernetes control plane, an AWS emulator, simulated nodes that are emulated EC2
instances, and lifeboatd, all as processes that listen on loopback only. With
` + "`up --karpenter`" + ` nodes come from Karpenter.`,
		Example: `  lifeboat sandbox demo
  lifeboat sandbox up --nodes 3
  eval "$(lifeboat sandbox env)"
  lifeboat sandbox down`,
	})
	cmd.AddCommand(
		newSandboxUp(s), newSandboxStatus(s), newSandboxList(s), newSandboxEnv(s),
		newSandboxDown(s), newSandboxDemo(s), newSandboxLogs(s), newSandboxChaos(s), newSandboxSupervise(s),
	)
	return cmd
}

// selected is the name of the sandbox that the flag or the environment selects.
func (s *session) selected() string { return cmp.Or(s.flags.Sandbox, sandbox.DefaultName) }

// notRunning is the error for a killed sandbox: its files exist, but it cannot be used.
func notRunning(name string) error {
	return fmt.Errorf("looking at the sandbox %s: %w", name, sandbox.ErrNotRunning)
}

// steps shows the steps of a sandbox on standard error. finish must be called.
func (s *session) steps() (render func(sandbox.Step), finish func()) {
	return sandbox.RenderStep(s.err)
}

// writeParts writes what a sandbox consists of.
func (s *session) writeParts(status sandbox.Status) {
	table := terminal.NewTable("PART", "STATE", "PID", "VERSION", "ADDRESS")
	for _, p := range status.Health {
		state, style := "up", terminal.Good
		if !p.Alive {
			state, style = "down", terminal.Bad
		}
		table.Row(
			terminal.Cell{Text: p.Name}, terminal.Cell{Text: state, Style: style},
			terminal.Cell{Text: fmt.Sprint(p.PID)}, terminal.Cell{Text: p.Version}, terminal.Cell{Text: p.Address},
		)
	}
	table.Write(s.out)
}

// stateOf is the state of a sandbox in one word, with its style.
func stateOf(status sandbox.Status) (string, terminal.Style) {
	switch {
	case !status.Running:
		return "dead", terminal.Bad
	case !status.Ready:
		return "coming up", terminal.Warn
	}
	for _, p := range status.Health {
		if !p.Alive {
			return "broken", terminal.Bad
		}
	}
	return "up", terminal.Good
}

// age is how long a sandbox has been up.
func (s *session) age(status sandbox.Status) string {
	if status.Started.IsZero() {
		return ""
	}
	return terminal.Duration(s.now().Sub(status.Started).Truncate(time.Second))
}
