// Command kubernetes is a complete Kubernetes in one binary: the control plane (etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler in one process, or etcd
// in a separate process), and the node programs kubelet and kube-proxy.
//
// It is built from the pinned modules in go.mod. Other programs start it as a process
// and never import it. Link it with
//
//	-X k8s.io/component-base/version.gitVersion=v1.36.3 (and gitMajor, gitMinor)
//
// Otherwise servers and nodes report v0.0.0-master+$Format:%H$, which breaks clients
// that parse versions.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers the client's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // registers the version metric
	"k8s.io/component-base/version"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = `kubernetes: a complete Kubernetes in one binary

Usage:
  kubernetes control-plane [flags]   etcd, API server, controller manager and scheduler in one process
  kubernetes etcd [flags]            etcd alone, for a control plane with --external-etcd
  kubernetes kubelet [flags]         upstream's kubelet
  kubernetes kube-proxy [flags]      upstream's kube-proxy
  kubernetes version                 versions of the built-in components
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	args := os.Args[2:]
	switch os.Args[1] {
	case "control-plane":
		os.Exit(controlPlane(args))
	case "etcd":
		os.Exit(etcdAlone(args))
	case "kubelet":
		os.Exit(upstream(kubelet.NewKubeletCommand(context.Background()), args))
	case "kube-proxy":
		os.Exit(upstream(kubeproxy.NewProxyCommand(), args))
	case "version":
		fmt.Printf("kubernetes %s, etcd %s, %s\n", version.Get().GitVersion, etcdversion.Version, version.Get().GoVersion)
	case "help", "-h", "--help":
		fmt.Print(usage)
	default:
		fmt.Fprintf(os.Stderr, "kubernetes: unknown command %q\n\n%s", os.Args[1], usage)
		os.Exit(2)
	}
}

// upstream runs an upstream command like its own main.
func upstream(command *cobra.Command, args []string) int {
	command.SetArgs(args)
	return cli.Run(command)
}

// controlPlane runs the combined control plane until SIGTERM or SIGINT.
func controlPlane(args []string) int {
	opts, err := parseOptions(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes control-plane:", err)
		return 2
	}
	return untilSignal("control-plane", func(ctx context.Context) error { return run(ctx, opts) })
}

// etcdAlone runs etcd until SIGTERM or SIGINT.
func etcdAlone(args []string) int {
	opts, err := parseEtcdOptions(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes etcd:", err)
		return 2
	}
	return untilSignal("etcd", func(ctx context.Context) error { return runEtcd(ctx, opts) })
}

// untilSignal runs a command until SIGTERM or SIGINT. A second signal ends the
// process at once.
func untilSignal(command string, run func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "kubernetes %s: %v\n", command, err)
		return 1
	}
	return 0
}
