package cli

import (
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func newSandboxEnv(s *session) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print what points kubectl and the AWS CLI at a sandbox",
		Example: `  eval "$(lifeboat sandbox env)"
  kubectl get nodes
  aws ec2 describe-instances`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			status, err := s.sandboxes.inspect(s.nameOf(name))
			if err != nil {
				return err
			}
			if !status.Running {
				return notRunning(status.Name)
			}
			if s.isJSON() {
				return s.writeJSON(variables(status.State))
			}
			s.out.Printf("%s", status.Exports())
			return nil
		},
	}
	s.addName(cmd, &name)
	return cmd
}

// variables are environment variables by name.
func variables(state sandbox.State) map[string]string {
	vars := map[string]string{}
	for _, v := range state.Env() {
		vars[v.Name] = v.Value
	}
	return vars
}
