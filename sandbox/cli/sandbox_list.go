package cli

import (
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func newSandboxList(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sandboxes of this machine",
		Example: `  lifeboat sandbox list
  lifeboat sandbox list -o json`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			all, err := s.sandboxes.list()
			if err != nil {
				return err
			}
			if s.isJSON() {
				if all == nil {
					all = []sandbox.Status{}
				}
				return s.writeJSON(all)
			}
			if len(all) == 0 {
				s.err.Printf("there is no sandbox; `%s sandbox up` brings one up\n", s.name)
				return nil
			}
			table := terminal.NewTable("NAME", "STATE", "AGE", "KUBECONFIG", "AWS ENDPOINT")
			for _, status := range all {
				word, style := stateOf(status)
				table.Row(
					terminal.Cell{Text: status.Name}, terminal.Cell{Text: word, Style: style},
					terminal.Cell{Text: s.age(status)}, terminal.Cell{Text: status.Kubeconfig}, terminal.Cell{Text: status.AWSEndpoint},
				)
			}
			table.Write(s.out)
			return nil
		},
	}
}
