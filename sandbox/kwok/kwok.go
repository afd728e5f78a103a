// Package kwok simulates the kubelets of nodes, with upstream's kwok as a child process.
//
// kwok simulates a Node while it has the label ManagedLabel: the Node becomes Ready, its Lease is
// renewed, and its pods run. Removing the label simulates a power cut: there is no heartbeat, and pods
// neither start nor stop. kwok's annotation selector is not used, because kwok 0.8.0 does not notice
// that a Node stops matching it.
//
// StartSecondsAnnotation sets how long a pod takes to start. The stop of a deleted pod takes its
// longest preStop hook (a sleep action, or sleep commands in an exec) plus StopSecondsAnnotation. The
// pod is then Succeeded, or Failed with exit code 143 if it has RunSecondsAnnotation. If its grace period ends first, it is killed and Failed with exit code 137.
// Then it is removed. A pod whose node shuts down (ShutdownAnnotation) stops in the same way, but is
// always Failed and stays until it is deleted. A pod with RunSecondsAnnotation ends without a deletion,
// as pods of Jobs do. Times are exact to a second and never early: a stop takes up to a second longer
// than its work.
package kwok

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

const (
	// ManagedLabel marks the Nodes that kwok simulates.
	ManagedLabel = "kwok.x-k8s.io/node"
	// ManagedValue is the value of ManagedLabel.
	ManagedValue = "fake"

	// StartSecondsAnnotation is the time from a pod's binding until its containers are Running and
	// Ready, in seconds. Default: 0.
	StartSecondsAnnotation = "sandbox.lifeboat.dev/start-seconds"

	// StopSecondsAnnotation is the time from SIGTERM, which follows the preStop hooks, to the exit
	// of a pod, in seconds. Default: 0.
	StopSecondsAnnotation = "sandbox.lifeboat.dev/stop-seconds"

	// RunSecondsAnnotation is the time until the containers of a pod exit without a request, in
	// seconds. Without a valid number they run until they are deleted.
	RunSecondsAnnotation = "sandbox.lifeboat.dev/run-seconds"

	// ShutdownAnnotation on a pod is the time (RFC 3339) at which the kubelet of its node, which
	// shuts down, asked it to stop. On a Node it means that the node shuts down: kwok does not make
	// it Ready then.
	ShutdownAnnotation = "sandbox.lifeboat.dev/shutdown-time"

	// ShutdownGraceSecondsAnnotation is the grace period of such a pod, in seconds.
	ShutdownGraceSecondsAnnotation = "sandbox.lifeboat.dev/shutdown-grace-seconds"

	// ExitCodeAnnotation is the exit code of the containers of a pod with RunSecondsAnnotation.
	// Default: 0.
	ExitCodeAnnotation = "sandbox.lifeboat.dev/exit-code"
)

// LeaseDuration is the duration of the nodes' Leases. They are renewed four times as often. After
// kwok was killed and restarted, it takes over the nodes when their Leases have expired: after this
// time and a second.
const LeaseDuration = 4 * time.Second

// Options are the options of kwok.
type Options struct {
	Binary         string // the kwok program, from assets.Ensure; required
	Kubeconfig     string // an administrator's; required
	Dir            string // directory of all files; must exist; required
	KubeletVersion string // what nodes report, as v1.36.3; required
}

// Start starts kwok. It listens on no port. ctx bounds only the start.
//
// kwok reconnects after an outage of the API server, but may lose the operation that ran at that
// moment. After a restart of the API server, restart kwok too, and call Resync.
func Start(ctx context.Context, opts Options) (*process.Process, error) {
	if opts.Binary == "" || opts.Kubeconfig == "" || opts.Dir == "" || opts.KubeletVersion == "" {
		return nil, errors.New("starting kwok: Binary, Kubeconfig, Dir and KubeletVersion are required")
	}
	yaml, err := stages(opts.KubeletVersion)
	if err != nil {
		return nil, fmt.Errorf("starting kwok: %w", err)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("starting kwok: %w", err)
	}
	stagesFile := filepath.Join(dir, "stages.yaml")
	if err := os.WriteFile(stagesFile, yaml, 0o600); err != nil {
		return nil, fmt.Errorf("starting kwok: writing the stages: %w", err)
	}
	return process.Start(ctx, process.Options{
		Name:    "kwok",
		Path:    opts.Binary,
		Args:    args(opts.Kubeconfig, stagesFile),
		Env:     environment(dir),
		Dir:     dir,
		LogFile: filepath.Join(dir, "kwok.log"),
	})
}

func args(kubeconfig, stagesFile string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + stagesFile,
		"--manage-all-nodes=false",
		"--manage-nodes-with-label-selector=" + ManagedLabel + "=" + ManagedValue,
		"--node-lease-duration-seconds=" + strconv.Itoa(int(LeaseDuration.Seconds())),
		// Empty, and it must be: see powerGuard.
		"--node-ip=",
		// The port for the kubelets' logs. With one, kwok listens on all addresses.
		"--node-port=0",
		// Addresses for pods on nodes without a podCIDR.
		"--cidr=10.244.0.0/16",
	}
}

// environment excludes a developer's own kwok configuration (~/.kwok, $KWOK_…).
func environment(dir string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "KWOK_") {
			env = append(env, kv)
		}
	}
	return append(env, "KWOK_WORKDIR="+dir)
}
