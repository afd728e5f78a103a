// Package program builds the programs that tests and benchmarks run as processes.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Lifeboatd builds lifeboatd into a directory and returns its path.
func Lifeboatd(ctx context.Context, dir string) (string, error) { return build(ctx, dir, "lifeboatd") }

// Lifeboat builds the CLI into a directory and returns its path.
func Lifeboat(ctx context.Context, dir string) (string, error) { return build(ctx, dir, "lifeboat") }

// Replay builds the program that evaluates the chart's alerts over recorded metrics.
func Replay(ctx context.Context, dir string) (string, error) {
	return buildIn(ctx, dir, "replay", filepath.Join("modules", "prometheus"), "./replay")
}

func build(ctx context.Context, dir, name string) (string, error) {
	return buildIn(ctx, dir, name, "", "./cmd/"+name)
}

// buildIn builds a program of a module of the repository into a directory, which it creates if necessary. It uses the flags of `make build`: they are part of the key of the build cache, and with
// others all of client-go and of the AWS SDK would be compiled again.
func buildIn(ctx context.Context, dir, name, module, source string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making room for %s: %w", name, err)
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("making room for %s: %w", name, err)
	}
	root, err := sources(ctx)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, source)
	cmd.Dir, cmd.Env = filepath.Join(root, module), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// sources is the directory of the root module, also from a module that replaces it. The go.mod of
// that module need not list all requirements of lifeboatd.
func sources(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/lifeboat-dev/lifeboat").Output()
	if err != nil {
		return "", fmt.Errorf("finding Lifeboat's sources: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
