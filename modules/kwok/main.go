// Command kwok is upstream's kwok controller, which simulates the kubelets of
// simulated nodes. It is built from a pinned module and run as a separate process.
//
// kwok is unmodified: this file replaces upstream's cmd/kwok, so that this module's
// go.mod and go.sum pin the version.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "running kwok:", err)
		os.Exit(1)
	}
}

func run() error {
	// The configuration flags are read before cobra parses the command line, because
	// the files that they name contain the defaults of the other flags.
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, _ := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}
