//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
)

// lifeboat is the CLI, built when a test first runs it.
var lifeboat = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lifeboat-cli-")
	if err != nil {
		return "", err
	}
	return program.Lifeboat(context.Background(), dir)
})

// cli runs the CLI as an administrator of the sandbox and its account, and returns its output and exit code.
func (r *rig) cli(args ...string) (string, int) {
	r.t.Helper()
	path, err := lifeboat()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+r.stateHome())
	for _, v := range r.State().Env() {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, sandboxstate.NameEnv+"=") // the tests use the flag
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	r.t.Logf("$ lifeboat %q: exit code %d\n%s", args, cmd.ProcessState.ExitCode(), out.String())
	return out.String(), cmd.ProcessState.ExitCode()
}

// stateHome is a directory in which --sandbox=e2e finds the sandbox.
func (r *rig) stateHome() string {
	r.t.Helper()
	dir := filepath.Dir(r.LifeboatLog())
	home := filepath.Join(filepath.Dir(dir), "state")
	all := filepath.Join(home, "lifeboat", "sandbox")
	if err := os.MkdirAll(all, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(all, r.State().Name)); err != nil && !errors.Is(err, fs.ErrExist) {
		r.t.Fatal(err)
	}
	return home
}

// mustCLI is cli for a command that has to succeed.
func (r *rig) mustCLI(args ...string) string {
	r.t.Helper()
	out, code := r.cli(args...)
	if code != 0 {
		r.t.Fatalf("lifeboat %q: exit code %d", args, code)
	}
	return out
}
