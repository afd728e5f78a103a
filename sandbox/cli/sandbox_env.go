package cli

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func newSandboxEnv(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print what points lifeboat, kubectl and the AWS CLI at a sandbox",
		Long: `Print the environment variables that point lifeboat, kubectl and the AWS CLI at a
sandbox. Each command of lifeboat then uses that sandbox, as with --sandbox.`,
		Example: `  eval "$(lifeboat sandbox env)"
  kubectl get nodes
  lifeboat status
  aws ec2 describe-instances`,
		Args: command.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := s.sandboxes.inspect(s.selected())
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
			if strings.HasPrefix(s.awsVersion(cmd.Context()), "aws-cli/1.") {
				s.err.Printf("%s\n", hintOldAWS)
			}
			return nil
		},
	}
}

// hintOldAWS is for version 1 of the AWS CLI: TestAWSCLI in the module emulator finds that its
// requests to SQS go to the host of the queue's region. It goes to standard error, because zsh
// does not accept comments in eval.
const hintOldAWS = `note: aws on $PATH has version 1, which ignores AWS_ENDPOINT_URL for SQS. Install version 2, or add
to its commands about queues: aws sqs --endpoint-url "$AWS_ENDPOINT_URL"`

// readAWSVersion is what `aws --version` prints, such as "aws-cli/2.17.0 Python/3.11.8"; empty: there
// is no aws.
func readAWSVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "aws", "--version").CombinedOutput() // old ones print it to standard error
	if err != nil {
		return ""
	}
	return string(text)
}

// variables are environment variables by name.
func variables(state sandbox.State) map[string]string {
	vars := map[string]string{}
	for _, v := range state.Env() {
		vars[v.Name] = v.Value
	}
	return vars
}
