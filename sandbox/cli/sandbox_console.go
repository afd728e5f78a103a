package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// openConsole starts `lifeboat console` for a sandbox. It ends with ctx.
func (s *session) openConsole(ctx context.Context, state sandbox.State) error {
	path, err := findLifeboat()
	if err != nil {
		return err
	}
	console := exec.CommandContext(ctx, path, "console", "--kubeconfig", state.Kubeconfig)
	console.Env = append(os.Environ(), sandboxstate.NameEnv+"=") // the user may have selected another sandbox
	console.Stdout, console.Stderr = s.err, s.err                // the report alone goes to standard output
	if err := console.Start(); err != nil {
		return fmt.Errorf("starting the console: %w", err)
	}
	go func() { _ = console.Wait() }() // it prints its own errors
	return nil
}

// findLifeboat looks beside this program and on $PATH.
func findLifeboat() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "lifeboat")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath("lifeboat")
	if err != nil {
		return "", fmt.Errorf("finding lifeboat for --console: it is neither beside this program nor on $PATH: run `make build`, or leave --console out")
	}
	return path, nil
}
