package command

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// CalledAsEnv passes the name that the user calls the program by to lifeboat-sandbox.
const CalledAsEnv = "LIFEBOAT_CALLED_AS"

// Env is what a run of the program gets from outside.
type Env struct {
	// Args are the arguments, the program's own name first.
	Args []string
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Getenv reads the environment.
	Getenv func(string) string
}

// OSEnv is the environment of this process.
func OSEnv() Env {
	return Env{Args: os.Args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}

// CalledAs is the name to use in help: kubectl runs a program named
// kubectl-lifeboat as `kubectl lifeboat`.
func CalledAs(env Env) string {
	if name := env.Getenv(CalledAsEnv); name != "" {
		return name
	}
	if len(env.Args) > 0 && strings.TrimSuffix(filepath.Base(env.Args[0]), ".exe") == "kubectl-lifeboat" {
		return "kubectl lifeboat"
	}
	return "lifeboat"
}

// Prepare makes a command the root: it reports errors by Finish and calls itself by name.
func Prepare(root *cobra.Command, env Env, name string) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(env.In)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return UsageErrorf("%w; see %s --help", err, cmd.CommandPath())
	})
}

// Group makes a command that only holds others.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := "see " + cmd.CommandPath() + " --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return UsageErrorf("%s has no command %q; %s", cmd.CommandPath(), args[0], hint)
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// Arguments makes a wrong number of arguments a usage error that says what is
// wanted.
func Arguments(least, most int, wanted string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return UsageErrorf("%s takes %s, got %d; see %s --help", cmd.CommandPath(), wanted, len(args), cmd.CommandPath())
		}
		return nil
	}
}

// aCommand is a command of this program inside a text.
var aCommand = regexp.MustCompile(`\blifeboat (adopt|approve|aws|console|doctor|drain|explain|hold|interrupt|migrate|nodegroup|pause|plan|release|report|resume|sandbox|status|support-bundle|uncordon|version|watch)\b`)

// Rename puts the name that the user calls the program by into a text.
func Rename(text, name string) string { return aCommand.ReplaceAllString(text, name+" $1") }

// NameExamples puts the name that the user calls the program by into the
// examples.
func NameExamples(cmd *cobra.Command, name string) {
	cmd.Example = Rename(cmd.Example, name)
	for _, sub := range cmd.Commands() {
		NameExamples(sub, name)
	}
}

// TakesNodes reports whether the arguments of a command are nodes.
func TakesNodes(cmd *cobra.Command) bool {
	return strings.Contains(cmd.Use, " NODE") || strings.Contains(cmd.Use, "[NODE")
}
