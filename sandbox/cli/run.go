// Package cli is the program lifeboat-sandbox: the commands under `lifeboat sandbox`, which the
// program lifeboat forwards to it. Each command has a file.
package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/smithy-go"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// Run runs the program and returns its exit code. A cancelled ctx is Ctrl-C.
func Run(ctx context.Context, env command.Env) int {
	// The libraries' own logs would break the progress line and repeat the errors.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	return newSession(env).run(ctx)
}

// session is one run of the program.
type session struct {
	env   command.Env
	name  string // of the program that passes the commands on: "lifeboat" or "kubectl lifeboat"
	out   terminal.Stream
	err   terminal.Stream
	now   func() time.Time
	flags command.Globals
	// The fields below access the machine; tests replace them.
	connect   connect
	sandboxes sandboxes
	// awsVersion is what the AWS CLI prints about itself.
	awsVersion func(context.Context) string
}

func newSession(env command.Env) *session {
	return &session{
		env:       env,
		name:      command.CalledAs(env),
		out:       terminal.NewStream(env.Out, env.Getenv),
		err:       terminal.NewStream(env.Err, env.Getenv),
		now:       time.Now,
		connect:   connectKubernetes,
		sandboxes: realSandboxes(),

		awsVersion: readAWSVersion,
	}
}

func (s *session) run(ctx context.Context) int {
	root := newRoot(s)
	root.SetArgs(arguments(s.env.Args[min(1, len(s.env.Args)):]))
	return command.Finish(ctx, root.ExecuteContext(ctx), s.err, s.name, explainError)
}

// arguments are the arguments of the root command. Its name is that of the program lifeboat, so that
// help and errors name commands as the user writes them.
func arguments(args []string) []string {
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		return slices.Insert(slices.Clone(args), 1, "sandbox")
	}
	return append([]string{"sandbox"}, args...)
}

func newRoot(s *session) *cobra.Command {
	root := command.Group(&cobra.Command{Use: "lifeboat"})
	command.Prepare(root, s.env, s.name)
	root.SetOut(s.out)
	root.SetErr(s.err)
	s.flags.Add(root, s.env.Getenv)
	root.AddCommand(newSandbox(s))
	command.DescribeOutputs(root)
	command.NameExamples(root, s.name)
	return root
}

// explainError returns the Problem that an error is.
func explainError(err error) command.Problem {
	var fromAWS *smithy.OperationError
	if errors.As(err, &fromAWS) {
		return command.HintAWS(err)
	}
	return command.Hint(err)
}

func (s *session) isJSON() bool { return s.flags.IsJSON() }

// writeJSON writes one value to standard output, indented.
func (s *session) writeJSON(value any) error { return command.WriteJSON(s.out, value) }
