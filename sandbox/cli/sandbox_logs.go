package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// logPoll is how often --follow looks for new lines.
const logPoll = 200 * time.Millisecond

func newSandboxLogs(s *session) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs PART",
		Short: "Print the log of a part of a sandbox, such as karpenter or lifeboatd",
		Long: `Print the log of a part of a sandbox. sandbox status lists the parts. Karpenter and
lifeboatd are processes here, so kubectl logs does not reach them.`,
		Example: `  lifeboat sandbox logs karpenter
  lifeboat sandbox logs lifeboatd --follow`,
		Args: command.Arguments(1, 1, "the name of a part, such as karpenter"),
		RunE: func(cmd *cobra.Command, args []string) error {
			status, err := s.sandboxes.inspect(s.selected())
			if err != nil {
				return err
			}
			path, err := logOf(status.State, args[0])
			if err != nil {
				return err
			}
			return copyLog(cmd.Context(), s.out, path, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue with new lines, until Ctrl-C")
	return cmd
}

// logOf is the path of a part's log.
func logOf(state sandbox.State, part string) (string, error) {
	var names []string
	for _, p := range state.Parts {
		if p.Log == "" {
			continue
		}
		if p.Name == part {
			return p.Log, nil
		}
		names = append(names, p.Name)
	}
	return "", fmt.Errorf("the sandbox %s has no part %q with a log; it has %s", state.Name, part, strings.Join(names, ", "))
}

// copyLog copies a file to out. With follow it waits for more, until ctx is done.
func copyLog(ctx context.Context, out io.Writer, path string, follow bool) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	defer file.Close()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("copying the log: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return ctx.Err()
		case <-time.After(logPoll):
		}
	}
}
