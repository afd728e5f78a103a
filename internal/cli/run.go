package cli

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// Exit codes. The help text of the program documents them.
const (
	ExitOK          = command.ExitOK
	ExitFailed      = command.ExitFailed
	ExitUsage       = command.ExitUsage
	ExitDoesNotFit  = command.ExitDoesNotFit
	ExitInterrupted = command.ExitInterrupted
)

// Env is what a run of the program gets from outside.
type Env = command.Env

// OSEnv is the environment of this process.
func OSEnv() Env { return command.OSEnv() }

// Run runs the program and returns its exit code. Ctrl-C cancels ctx.
func Run(ctx context.Context, env Env) int {
	// The libraries' logs would break the progress line and repeat the errors.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	return newSession(env).run(ctx)
}

// session is one run of the program.
type session struct {
	env  Env
	name string // as the user typed it: "lifeboat" or "kubectl lifeboat"
	out  terminal.Stream
	err  terminal.Stream
	// interactive is true if standard input is a terminal.
	interactive bool
	now         func() time.Time
	flags       command.Globals
	// clientVersion is the version of this program.
	clientVersion string
	// The following reach outside of the process; tests replace them.
	connect      func(ctx context.Context) (cluster, error)
	connectTo    func(ctx context.Context, kubeContext string) (cluster, error)
	connectCloud func(ctx context.Context, zone string) (cloud, error)
	findSandbox  func(name string) (connection, error)
	observeGroup func(ctx context.Context, name string) (nodegroup.Observed, error)
	runSandbox   func(args []string) error
	runHelm      func(ctx context.Context, args []string) error
}

func newSession(env Env) *session {
	s := &session{
		env:         env,
		name:        command.CalledAs(env),
		out:         terminal.NewStream(env.Out, env.Getenv),
		err:         terminal.NewStream(env.Err, env.Getenv),
		interactive: terminal.IsTerminal(env.In),
		now:         time.Now,
	}
	s.clientVersion = version.Get().Version
	s.connect = s.connectKubernetes
	s.connectTo = s.connectContext
	s.connectCloud = s.connectAWS
	s.observeGroup = s.observeAWSGroup
	s.findSandbox = findRunningSandbox
	s.runSandbox = s.becomeSandboxProgram
	s.runHelm = s.runHelmProgram
	return s
}

func (s *session) run(ctx context.Context) int {
	root := newRoot(s)
	root.SetArgs(s.env.Args[min(1, len(s.env.Args)):])
	return command.Finish(ctx, root.ExecuteContext(ctx), s.err, s.name, s.explainError)
}
