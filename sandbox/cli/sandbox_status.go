package cli

import (
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

func newSandboxStatus(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what a sandbox consists of, and whether it is up",
		Long:  "Show what a sandbox consists of, and whether it is up. Exit code 1 if it is not.",
		Example: `  lifeboat sandbox status
  lifeboat sandbox status --sandbox second -o json`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			status, err := s.sandboxes.inspect(s.selected())
			if err != nil {
				return err
			}
			word, style := stateOf(status)
			if s.isJSON() {
				err = s.writeJSON(status)
			} else {
				s.out.Printf("%s is %s", s.out.Paint(terminal.Bold, status.Name), s.out.Paint(style, word))
				if age := s.age(status); age != "" {
					s.out.Printf(", begun %s ago", age)
				}
				s.out.Printf("\n\n")
				s.writeParts(status)
			}
			if err == nil && style != terminal.Good {
				return command.ExitError{Code: command.ExitFailed}
			}
			return err
		},
	}
}
