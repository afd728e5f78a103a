package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

// sandboxProgram runs the commands of sandboxes. It is a program and a module of its own:
// Helm's engine, which it needs, would double the size of this one.
const sandboxProgram = "lifeboat-sandbox"

func newSandbox(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:                "sandbox",
		Short:              "Lifeboat on this machine: a real control plane, simulated nodes, an AWS emulator",
		Example:            "  lifeboat sandbox demo",
		DisableFlagParsing: true, // the flags are those of the other program
		RunE:               func(_ *cobra.Command, args []string) error { return s.runSandbox(args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			err := s.runSandbox(slices.Concat([]string{cobra.ShellCompRequestCmd}, args, []string{toComplete}))
			cobra.CompErrorln(err.Error())
			return nil, cobra.ShellCompDirectiveError
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if err := s.runSandbox(s.helpArguments()); err != nil {
			cmd.PrintErrln("error:", err)
		}
	})
	return cmd
}

// helpArguments turn `help sandbox up` into `up --help`.
func (s *session) helpArguments() []string {
	args := s.env.Args[min(1, len(s.env.Args)):]
	return append(slices.Clone(args[slices.Index(args, "sandbox")+1:]), "--help")
}

// becomeSandboxProgram replaces this process with lifeboat-sandbox, so that the standard
// streams, signals and the exit code are those of that program. It returns on failure only.
func (s *session) becomeSandboxProgram(args []string) error {
	path, err := findSandboxProgram()
	if err != nil {
		return err
	}
	env := append(os.Environ(), command.CalledAsEnv+"="+s.name)
	err = syscall.Exec(path, append([]string{path}, args...), env) //nolint:gosec // G204: the user runs it, with the same rights
	return fmt.Errorf("starting %s: %w", path, err)
}

// findSandboxProgram looks where `make build` and a package would have put it.
func findSandboxProgram() (string, error) {
	if self, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(self); err == nil {
			self = target
		}
		beside := filepath.Join(filepath.Dir(self), sandboxProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(sandboxProgram)
	if err != nil {
		return "", errors.New("finding " + sandboxProgram + ": it is neither beside this program nor on $PATH: " +
			"run `make build` in a clone of Lifeboat, which builds it beside lifeboat")
	}
	return path, nil
}

// lifeboatdPart is the name of the controller among the parts of a sandbox.
const lifeboatdPart = "lifeboatd"

// findRunningSandbox tells how to speak to a running sandbox.
func findRunningSandbox(name string) (connection, error) {
	found, err := sandboxstate.Inspect(name)
	if err != nil {
		return connection{}, err
	}
	if !found.Running { // it was killed, and is still there
		return connection{}, fmt.Errorf("looking at the sandbox %s: %w", name, sandboxstate.ErrNotRunning)
	}
	lifeboatd := &doctor.Process{}
	for _, p := range found.Health {
		lifeboatd.Alive = lifeboatd.Alive || p.Name == lifeboatdPart && p.Alive
	}
	return connection{
		lifeboatd: lifeboatd,
		name:      found.Name, kubeconfig: found.Kubeconfig,
		endpoint: found.AWSEndpoint, account: found.Account, region: found.Region,
		accessKeyID: found.AccessKeyID, secretAccessKey: found.SecretAccessKey,
		queueURL: found.QueueURL,
	}, nil
}
