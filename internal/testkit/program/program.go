// Package program builds the programs that tests and benchmarks run as processes.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Lifeboatd builds lifeboatd into a directory, which is made where there is none, and
// returns its path. It is built as `make build` does it, since flags are part of the
// build cache's key: with others all of client-go and of the AWS SDK would be compiled
// once more.
func Lifeboatd(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making room for lifeboatd: %w", err)
	}
	path := filepath.Join(dir, "lifeboatd")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "github.com/lifeboat-dev/lifeboat/cmd/lifeboatd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building lifeboatd: %w\n%s", err, out)
	}
	return path, nil
}
