// Command lifeboat is the CLI. Installed as kubectl-lifeboat on $PATH, it is
// the kubectl plugin `kubectl lifeboat`. See `lifeboat --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // policies name time zones, which a machine may lack

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may use OIDC

	"github.com/lifeboat-dev/lifeboat/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first Ctrl-C cancels ctx and cleans up; a second one ends the program
	// at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, cli.OSEnv())
}
