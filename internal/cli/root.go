package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `Lifeboat moves pods off AWS nodes before an interruption stops the nodes.

Exit codes:
  0    success
  1    failure; standard error says why and what to do next; doctor: something is
       broken; approve: nothing waits for approval; hold, release: there is
       nothing to hold or to release
  2    wrong usage; doctor: some checks could not run
  3    plan: some pod cannot leave with its whole grace period in time;
       wire plan: there are changes to make; convert: some input has no
       equivalent and needs manual work
  130  stopped by Ctrl-C; temporary resources were cleaned up`

// globalFlags are the flags that every command has.
type globalFlags struct {
	kubeconfig string
	context    string
	sandbox    string
	output     string
}

const (
	outputText = "text"
	outputJSON = "json"
	// outputYAML is for commands that print objects; the annotation takesYAML
	// marks them.
	outputYAML = "yaml"
	takesYAML  = "lifeboat.dev/yaml"
	// defaultSandbox is the sandbox that --sandbox without a name selects.
	defaultSandbox = "default"
)

func newRoot(s *session) *cobra.Command {
	root := s.group(&cobra.Command{
		Use:   strings.ReplaceAll(s.name, " ", "-"),
		Short: "Move pods off AWS nodes before an interruption",
		Long:  rootHelp,
		Example: `  # Try everything on this machine, without a cloud account
  lifeboat sandbox demo

  # Predict what a reclaim would do to a node's pods
  lifeboat plan ip-10-0-1-5.ec2.internal

  # Show which policy and rule decide, and why
  lifeboat explain ip-10-0-1-5.ec2.internal

  # Interrupt a spot node on purpose and follow its drain
  lifeboat interrupt ip-10-0-1-5.ec2.internal --fis-role-arn arn:aws:iam::123456789012:role/fis --watch`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: s.name},
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: s.checkGlobals,
	})
	root.SetIn(s.env.In)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorf("%w; see %s --help", err, cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&s.flags.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default $KUBECONFIG, then ~/.kube/config)")
	f.StringVar(&s.flags.context, "context", "", "context in the kubeconfig")
	f.StringVar(&s.flags.sandbox, "sandbox", "", "use the sandbox of this name on this machine: its cluster, its AWS emulator and its queue")
	f.Lookup("sandbox").NoOptDefVal = defaultSandbox
	f.StringVarP(&s.flags.output, "output", "o", outputText, "output format: text, or json for scripts")

	root.AddCommand(
		newApprove(s),
		newConvert(s),
		newDoctor(s),
		newExplain(s),
		newHold(s),
		newInterrupt(s),
		newNodeGroup(s),
		newPlan(s),
		newRelease(s),
		newWatch(s),
		newSandbox(s),
		newVersion(s),
		newWire(s),
	)
	s.nameExamples(root)
	return root
}

// group makes a command that only has subcommands.
func (s *session) group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := "see " + cmd.CommandPath() + " --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usageErrorf("%s has no command %q; %s", cmd.CommandPath(), args[0], hint)
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// arguments returns a check of the number of arguments. Its error says which
// arguments the command takes.
func arguments(least, most int, wanted string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return usageErrorf("%s takes %s, got %d; see %s --help", cmd.CommandPath(), wanted, len(args), cmd.CommandPath())
		}
		return nil
	}
}

func (s *session) checkGlobals(cmd *cobra.Command, _ []string) error {
	switch s.flags.output {
	case outputText, outputJSON:
	case outputYAML:
		if cmd.Annotations[takesYAML] == "" {
			return usageErrorf("%s does not support YAML: use -o text or -o json", cmd.CommandPath())
		}
	default:
		return usageErrorf("unknown output format %q: use -o text or -o json", s.flags.output)
	}
	if s.flags.sandbox != "" && (s.flags.kubeconfig != "" || s.flags.context != "") {
		return usageErrorf("--sandbox has its own cluster: remove --kubeconfig and --context")
	}
	return nil
}

func (s *session) isJSON() bool { return s.flags.output == outputJSON }

// commandPattern matches a command of this program in a text.
var commandPattern = regexp.MustCompile(`\blifeboat (approve|convert|doctor|explain|hold|interrupt|nodegroup|plan|release|sandbox|version|watch|wire)\b`)

// nameExamples replaces the program's name in the examples by the name that the
// user typed.
func (s *session) nameExamples(cmd *cobra.Command) {
	cmd.Example = commandPattern.ReplaceAllString(cmd.Example, s.name+" $1")
	for _, sub := range cmd.Commands() {
		s.nameExamples(sub)
	}
}
