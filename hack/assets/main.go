// Command assets builds the control plane and the kubelets, simulated ones and, where
// there can be any, real ones, or finds them in the cache, so that the first test
// does not seem to hang for minutes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/lifeboat-dev/lifeboat/internal/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/internal/sandbox/instances"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ensure := assets.Ensure
	if instances.Missing() == nil {
		ensure = assets.EnsureReal
	}
	if _, err := ensure(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
