package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func newSandboxDown(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Take a sandbox down: no process, port or folder stays behind",
		Long: `Take a sandbox down: no process, port or folder stays behind. It also clears
what a sandbox that was killed has left. A sandbox that is not there is no
failure.`,
		Example: `  lifeboat sandbox down
  lifeboat sandbox down --sandbox second`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := s.selected()
			render, finish := s.steps()
			err := s.sandboxes.stop(cmd.Context(), name, render)
			finish()
			gone := errors.Is(err, sandbox.ErrNotRunning)
			if err != nil && !gone {
				return err
			}
			if s.isJSON() {
				return s.writeJSON(map[string]any{"name": name, "wasRunning": !gone})
			}
			if gone {
				s.out.Printf("there is no sandbox %s; nothing to take down\n", name)
			} else {
				s.out.Printf("the sandbox %s is gone\n", name)
			}
			return nil
		},
	}
}
