package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
)

// Exit codes. The help text of the program documents them.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitDoesNotFit  = 3
	ExitInterrupted = 130
)

// Env is the environment of one run of the program.
type Env struct {
	// Args are the arguments, including the program's own name.
	Args []string
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Getenv reads the environment.
	Getenv func(string) string
}

// OSEnv returns the environment of this process.
func OSEnv() Env {
	return Env{Args: os.Args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}

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
	flags       globalFlags
	// The following reach outside of the process; tests replace them.
	connect      func(ctx context.Context) (cluster, error)
	connectCloud func(ctx context.Context, zone string) (cloud, error)
	findSandbox  func(name string) (connection, error)
	observeGroup func(ctx context.Context, name string) (nodegroup.Observed, error)
	sandboxes    sandboxes
}

func newSession(env Env) *session {
	s := &session{
		env:         env,
		name:        calledAs(env.Args),
		out:         terminal.NewStream(env.Out, env.Getenv),
		err:         terminal.NewStream(env.Err, env.Getenv),
		interactive: terminal.IsTerminal(env.In),
		now:         time.Now,
		sandboxes:   realSandboxes(),
	}
	s.connect = s.connectKubernetes
	s.connectCloud = s.connectAWS
	s.observeGroup = s.observeAWSGroup
	s.findSandbox = s.findRunningSandbox
	return s
}

// calledAs returns the name of the program for help texts. kubectl runs a
// plugin named kubectl-lifeboat as `kubectl lifeboat`.
func calledAs(args []string) string {
	if len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == "kubectl-lifeboat" {
		return "kubectl lifeboat"
	}
	return "lifeboat"
}

func (s *session) run(ctx context.Context) int {
	root := newRoot(s)
	root.SetArgs(s.env.Args[min(1, len(s.env.Args)):])
	err := root.ExecuteContext(ctx)
	var quiet exitError
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		s.err.Printf("interrupted\n")
		return ExitInterrupted
	case errors.As(err, &quiet) && quiet.err == nil:
		return quiet.code
	}
	s.err.Printf("%s %v\n", s.err.Paint(terminal.Bad, "error:"), err)
	if hint := s.hint(err); hint != "" {
		s.err.Printf("%s\n", hint)
	}
	if quiet.code != 0 {
		return quiet.code
	}
	return ExitFailed
}
