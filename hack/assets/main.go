// Command assets builds the control plane, Karpenter and the kubelets, simulated ones
// and, where there can be any, real ones, or finds them in the cache, so that the
// first test does not seem to hang for minutes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/lifeboat-dev/lifeboat/internal/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/instances"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	wanted := []func(context.Context, io.Writer) (assets.Paths, error){assets.EnsureKarpenter}
	if instances.Missing() == nil {
		wanted = append(wanted, assets.EnsureReal)
	}
	for _, ensure := range wanted {
		if _, err := ensure(ctx, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
