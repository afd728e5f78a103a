// Package kwok plays the kubelets of simulated nodes, with upstream's kwok as a
// child process.
//
// A Node is played while it carries the label ManagedLabel: it becomes Ready
// with a Lease that is renewed, and pods on it run. When the label is taken off,
// the node goes dark, as in a power cut: no heartbeat, and its pods neither start
// nor stop any more. (kwok's own annotation selector would not do: kwok 0.8.0
// does not notice when a Node stops matching it, and plays it for ever.)
//
// A pod takes as long to start as StartSecondsAnnotation says. When it is
// deleted it takes as long to stop as its longest preStop hook (a sleep action,
// or sleep commands in an exec) plus StopSecondsAnnotation, and is then
// Succeeded; or it is killed when its grace period ends, and is then Failed with
// exit code 137. Then it is removed. A pod whose node shuts down (ShutdownAnnotation)
// stops in the same way, is Failed in either case, and stays until it is deleted. A pod whose RunSecondsAnnotation says so
// ends without a deletion, as those of Jobs do. Times are exact to a second,
// and never early: a stop takes up to a second longer than its work.
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
	// ManagedValue is what ManagedLabel says on them.
	ManagedValue = "fake"

	// StartSecondsAnnotation says on a pod how many seconds after it was bound its
	// containers are Running and Ready. Absent: at once.
	StartSecondsAnnotation = "sandbox.lifeboat.dev/start-seconds"

	// StopSecondsAnnotation says on a pod how many seconds pass from SIGTERM, which is
	// after the preStop hooks, to the exit. Absent: 0.
	StopSecondsAnnotation = "sandbox.lifeboat.dev/stop-seconds"

	// RunSecondsAnnotation says on a pod how many seconds its containers run until
	// they exit by themselves. Absent, or no number: for ever.
	RunSecondsAnnotation = "sandbox.lifeboat.dev/run-seconds"

	// ShutdownAnnotation says on a pod when the kubelet of its node, which shuts down,
	// asked it to stop (RFC 3339), and on a Node that it is shutting down: kwok no
	// longer makes it Ready then.
	ShutdownAnnotation = "sandbox.lifeboat.dev/shutdown-time"

	// ShutdownGraceSecondsAnnotation says on such a pod within how many seconds it has to
	// stop.
	ShutdownGraceSecondsAnnotation = "sandbox.lifeboat.dev/shutdown-grace-seconds"

	// ExitCodeAnnotation says on such a pod what they exit with. Absent: 0.
	ExitCodeAnnotation = "sandbox.lifeboat.dev/exit-code"
)

// LeaseDuration is the duration of the nodes' Leases. They are renewed four times as often. After
// kwok was killed and restarted, it takes over the nodes when their Leases have expired: after this
// time and a second.
const LeaseDuration = 4 * time.Second

// Options say how to run kwok.
type Options struct {
	Binary         string // the kwok program, as assets.Ensure gives it; required
	Kubeconfig     string // an administrator's; required
	Dir            string // where everything is written; must exist; required
	KubeletVersion string // what nodes report, as v1.36.3; required
}

// Start starts kwok. It listens on no port. ctx bounds the starting only.
//
// It follows the API server over an outage, but what it did at that very moment
// may be lost: where the API server is killed and started again, start a new
// kwok too, and have it look at all pods again (Resync). It then takes up everything
// where it stands.
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

// environment keeps a developer's own kwok configuration (~/.kwok, $KWOK_…) out.
func environment(dir string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "KWOK_") {
			env = append(env, kv)
		}
	}
	return append(env, "KWOK_WORKDIR="+dir)
}
