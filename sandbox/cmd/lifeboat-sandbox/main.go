// Command lifeboat-sandbox runs Lifeboat on this machine. The program lifeboat passes
// `lifeboat sandbox ...` on to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first Ctrl-C cleans up; a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, command.OSEnv())
}
