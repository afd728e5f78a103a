// Command assets builds the programs that tests start, or finds them in the cache.
// Without it, the first test would appear to hang for minutes. It builds the control
// plane and simulated kubelets. With -all it also builds Karpenter and, if the
// machine supports them, real kubelets.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
)

func main() {
	all := flag.Bool("all", false, "build the programs for `make e2e`; the default is those for `make test`")
	versions := flag.Bool("karpenter", false, "build the control plane and Karpenter, and print their versions")
	out := flag.String("o", "", "directory to copy the programs of the demo to, Karpenter among them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *out != "" || *versions {
		paths, err := assets.EnsureKarpenter(ctx, os.Stderr)
		switch {
		case err != nil:
		case *versions:
			fmt.Println(paths.KubernetesVersion, paths.KarpenterVersion)
		default:
			err = assets.Export(paths, *out)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for _, ensure := range steps(*all) {
		if _, err := ensure(ctx, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func steps(all bool) []func(context.Context, io.Writer) (assets.Paths, error) {
	if !all {
		return []func(context.Context, io.Writer) (assets.Paths, error){assets.Ensure}
	}
	out := []func(context.Context, io.Writer) (assets.Paths, error){assets.EnsureKarpenter}
	if os.Getenv("LIFEBOAT_OLDER_KARPENTER") != "" { // see sandbox/e2e
		out = append(out, assets.EnsureOlderKarpenter)
	}
	if instances.Missing() == nil {
		out = append(out, assets.EnsureReal, assets.EnsureHelm, assets.EnsureCSI)
	}
	return out
}
