package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// auditPolicy logs the requests of Lifeboat's controller account, without bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:serviceaccount:%s:%s"]
- level: None
`

// cluster is an etcd process with fsync and a kube-apiserver process. There are no
// controllers and no scheduler: the benchmark creates every object itself.
type cluster struct {
	*controlplane.ControlPlane
	etcd     *process.Process
	data     string // etcd's directory
	auditLog string
}

func startCluster(tb testing.TB, dir string) *cluster {
	tb.Helper()
	programs, err := assets.Ensure(tb.Context(), tb.Output())
	must(tb, err)
	c := &cluster{auditLog: filepath.Join(dir, "audit.log")}
	data := filepath.Join(dir, "cluster", "data")
	c.data = data
	must(tb, os.MkdirAll(data, 0o700))
	c.etcd, err = process.Start(tb.Context(), process.Options{
		Name: "etcd", Path: programs.Kubernetes, Args: []string{"etcd", "--data-dir=" + data}, LogFile: filepath.Join(dir, "etcd.log"),
	})
	must(tb, err)
	tb.Cleanup(c.etcd.Kill9)
	waitFor(tb, "etcd to listen", 30*time.Second, func() (bool, error) {
		_, err := os.Stat(filepath.Join(data, "etcd:0"))
		return err == nil, errors.Join(err, c.etcd.Err())
	})
	policy := filepath.Join(dir, "audit-policy.yaml")
	must(tb, os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, chart.Namespace, chart.ControllerAccount), 0o600))
	c.ControlPlane, err = controlplane.Start(tb.Context(), controlplane.Options{
		Binary: programs.Kubernetes, Dir: filepath.Join(dir, "cluster"),
		ProcessArgs: []string{"--external-etcd", "--apiserver-only"},
		APIServerArgs: []string{
			"--delete-collection-workers=16", // for the deletion of a world between two measurements
			"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog, "--audit-log-maxsize=4000",
		},
	})
	must(tb, err)
	tb.Cleanup(c.ControlPlane.Kill9) // the data is not needed
	return c
}

// fsyncTime is the median time of fdatasync after a write of 4 KiB into dir.
func fsyncTime(tb testing.TB, dir string) time.Duration {
	tb.Helper()
	file, err := os.Create(filepath.Join(dir, "fsync"))
	must(tb, err)
	defer file.Close()
	times := make([]time.Duration, 101)
	for i := range times {
		_, err := file.Write(make([]byte, 4096))
		must(tb, err)
		began := time.Now()
		must(tb, syscall.Fdatasync(int(file.Fd())))
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// karpenterCRDs returns the files with Karpenter's CRDs, of the module that
// modules/karpenter pins. Karpenter itself is not built.
func karpenterCRDs(ctx context.Context) ([]string, error) {
	const module = "github.com/aws/karpenter-provider-aws"
	var stderr strings.Builder
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Stderr = filepath.Join("..", "..", "modules", "karpenter"), &stderr
	dir, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("finding Karpenter's module: %w: %s", err, &stderr)
	}
	if len(strings.TrimSpace(string(dir))) == 0 {
		download := exec.CommandContext(ctx, "go", "mod", "download", module)
		download.Dir = list.Dir
		if out, err := download.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("downloading Karpenter's module: %w: %s", err, out)
		}
		return karpenterCRDs(ctx)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "pkg", "apis", "crds", "*.yaml"))
	if len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there are no CRDs in %s", dir))
	}
	return files, err
}

// waitFor polls a condition. On timeout it fails with the error that the condition returned.
func waitFor(tb testing.TB, what string, within time.Duration, holds func() (bool, error)) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), within)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("waited %s for %s: %v", within, what, err)
		case <-tick.C:
		}
	}
}
