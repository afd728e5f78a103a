package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenarios"
)

const (
	// defaultScenario is Karpenter's walkthrough; smallScenario is faster to build and to run.
	defaultScenario = "spot-walkthrough"
	smallScenario   = "first-voyage"
)

func newSandboxDemo(s *session) *cobra.Command {
	var f superviseFlags
	var small, withConsole bool
	cmd := &cobra.Command{
		Use:   "demo [SCENARIO]",
		Short: "Run a scenario in a new sandbox, and remove the sandbox",
		Long: fmt.Sprintf(`Run a scenario in a new sandbox, show its timeline, and remove the sandbox.

SCENARIO is one of those built in (%s), or the path of a
.txtar file. Without one it is %s: Karpenter, unmodified,
provisions a spot node, AWS takes it back, and a replacement is up before the
pods leave. The first time, that builds Kubernetes and Karpenter; --small plays
%s, which does without Karpenter.

Exit code 0 says that all that the scenario expects came true: in these two, that
every pod left with its full grace period before the deadline and none was lost;
in the first, that there never were fewer pods Ready than wanted. With -o json the
report alone goes to standard output.`, scenarioNames(), defaultScenario, smallScenario),
		Example: `  lifeboat sandbox demo
  lifeboat sandbox demo --small
  lifeboat sandbox demo -o json | jq .secondsToSpare
  lifeboat sandbox demo --small --console
  lifeboat sandbox demo my-scenario.txtar`,
		Args: command.Arguments(0, 1, "at most one scenario"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := defaultScenario
			switch {
			case small && len(args) == 1:
				return command.UsageErrorf("--small plays %s: leave %s out, or --small", smallScenario, args[0])
			case small:
				name = smallScenario
			case len(args) == 1:
				name = args[0]
			}
			if !cmd.Flags().Changed("sandbox") {
				s.flags.Sandbox = "" // the scenario's name, so that a running sandbox is not used
			}
			return s.demo(cmd.Context(), f, name, withConsole)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&small, "small", false, "play "+smallScenario+", without Karpenter")
	cmd.Flags().BoolVar(&withConsole, "console", false, "serve the console of the sandbox, and keep the sandbox until Ctrl-C")
	return cmd
}

func (s *session) demo(ctx context.Context, f superviseFlags, name string, withConsole bool) error {
	sc, err := readScenario(name)
	if err != nil {
		return err
	}
	stream := s.out
	if s.isJSON() {
		stream = s.err
	}
	options := f.options(s)
	options.Name = s.flags.Sandbox
	render, finish := s.steps()
	options.Progress = render
	play := scenario.Options{Sandbox: options, Moment: scenario.RenderMoment(stream)}
	if withConsole {
		play.Up = s.openConsole
		play.Before = func(ctx context.Context) {
			s.err.Printf("The sandbox and its console stay until Ctrl-C.\n")
			<-ctx.Done()
		}
	}
	report, err := s.sandboxes.play(ctx, sc, play)
	finish()
	if report != nil {
		if writeErr := s.writeReport(report); writeErr != nil {
			return writeErr
		}
	}
	var failed *scenario.FailedError
	if errors.As(err, &failed) {
		return command.ExitError{Code: command.ExitFailed} // the report has the failures
	}
	return err
}

func (s *session) writeReport(report *scenario.Report) error {
	if s.isJSON() {
		return s.writeJSON(report)
	}
	scenario.Render(s.out, report)
	return nil
}

// scenarioNames lists the scenarios that are built in.
func scenarioNames() string {
	names, err := scenarios.Names()
	if err != nil {
		return defaultScenario // embedded files can always be listed
	}
	return strings.Join(names, ", ")
}

// readScenario reads a scenario: a file, if the name looks like one, otherwise a built-in one.
func readScenario(name string) (*scenario.Scenario, error) {
	if filepath.Ext(name) == ".txtar" || strings.ContainsRune(name, filepath.Separator) {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the scenario: %w", err)
		}
		return scenario.Parse(filepath.Base(name), text)
	}
	text, err := scenarios.Read(name)
	if err != nil {
		return nil, command.UsageErrorf("there is no scenario %q: write %s, or the path of a .txtar file", name, scenarioNames())
	}
	return scenario.Parse(name, text)
}
