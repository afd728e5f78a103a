//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"

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

// cli runs the CLI as an administrator of the sandbox, and returns its output and exit code.
func (r *rig) cli(args ...string) (string, int) {
	r.t.Helper()
	path, err := lifeboat()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.State().Kubeconfig)
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

// mustCLI is cli for a command that has to succeed.
func (r *rig) mustCLI(args ...string) string {
	r.t.Helper()
	out, code := r.cli(args...)
	if code != 0 {
		r.t.Fatalf("lifeboat %q: exit code %d", args, code)
	}
	return out
}
