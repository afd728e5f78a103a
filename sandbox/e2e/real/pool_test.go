//go:build e2e

package real

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
)

// drainedNodes is an environment variable with the number of nodes that TestDrainPool drains, 3 by
// default. An instance takes nine of the 128 inotify instances that Linux allows a user, so ten of
// them, the two that stay and the control plane leave room for nothing else.
const drainedNodes = "LIFEBOAT_DRAIN_NODES"

// TestDrainPool drains a pool of nodes at once with `lifeboat drain`, while requests arrive. With
// Surge no endpoint may be missing at any time. In the twin the pods are evicted.
func TestDrainPool(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(drainedNodes), "3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lifeboat(); err != nil { // before anything is timed
		t.Fatal(err)
	}
	s := needWorld(t)
	const pool = "drained"
	nodes := s.bootPool(pool, n)
	t.Run("surge: no endpoint is missing", func(t *testing.T) {
		seen, d := needWorld(t).drainPool(web{Name: "drained-surge", Pool: pool}, nodes, v1beta1.StrategySurge)
		if d.Below != 0 || seen.Failed != 0 {
			t.Errorf("%s; %s", d, seen)
		}
	})
	t.Run("twin: evicted", func(t *testing.T) {
		seen, d := needWorld(t).drainPool(web{Name: "drained-evict", Pool: pool}, nodes, v1beta1.StrategyEvict)
		if d.Below == 0 || d.Lowest == d.Wanted {
			t.Errorf("no endpoint was missing (%s; %s): the setup cannot detect a loss", d, seen)
		}
	})
}

// bootPool boots nodes that are terminated after the test.
func (s *stage) bootPool(pool string, n int) []ec2.Instance {
	s.t.Helper()
	began := time.Now()
	var all []ec2.Instance
	for range n {
		in, err := s.boot(pool, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, in)
		s.t.Cleanup(func() {
			if _, err := s.EC2().Terminate([]string{in.ID}); err != nil {
				s.t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	for _, in := range all {
		if err := s.waitReady(ctx, in); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Logf("FIGURES %s: %d nodes were Ready after %.1f s", s.t.Name(), n, time.Since(began).Seconds())
	return all
}

// drainPool places two pods on each node, drains all nodes, and makes them schedulable again. It
// returns what the load and the endpoints show.
func (s *stage) drainPool(w web, nodes []ec2.Instance, strategy v1beta1.Strategy) (traffic, dip) {
	s.t.Helper()
	w.Replicas, w.PreStop, w.ReadyAfter, w.Spread = 2*len(nodes), hook, 5*time.Second, true
	s.policy(w.Pool, fmt.Sprintf("[{kinds: [Requested], action: Drain, strategy: %s}]", strategy))
	s.apply(w.objects()...)
	old := s.untilReady(w, func(node string) bool {
		return slices.ContainsFunc(nodes, func(in ec2.Instance) bool { return in.PrivateDNSName == node })
	})
	for _, in := range nodes {
		if !slices.ContainsFunc(old, func(p corev1.Pod) bool { return p.Spec.NodeName == in.PrivateDNSName }) {
			s.t.Logf("no pod is on %s", in.PrivateDNSName)
		}
	}
	endpoints := s.watchEndpoints(w.Name)
	load := s.load(w, "/")

	selector := "--selector=" + poolLabel + "=" + w.Pool
	asked := time.Now()
	s.cli("drain", selector)
	for _, in := range nodes {
		s.drained(in)
	}
	done := time.Now()
	for _, l := range s.readJournals(names(old)) {
		s.check(l.whole(hook, done))
	}
	s.untilReady(w, func(node string) bool { return node != "" })
	seen, d := load.stop(), endpoints.between(w.Replicas, asked, time.Now())
	s.t.Logf("FIGURES %s: %s; drained after %.1f s", s.t.Name(), d, done.Sub(asked).Seconds())

	s.cli("uncordon", selector)
	for _, in := range nodes {
		s.until(in.PrivateDNSName+" to be schedulable", time.Minute, func(ctx context.Context) (bool, error) {
			node := &corev1.Node{}
			err := s.client.Get(ctx, types.NamespacedName{Name: in.PrivateDNSName}, node)
			return !node.Spec.Unschedulable, err
		})
	}
	return seen, d
}

// drained waits until the pods have left a node.
func (s *stage) drained(in ec2.Instance) {
	s.t.Helper()
	s.until(in.ID+" to be drained", 4*time.Minute, func(ctx context.Context) (bool, error) {
		record, err := s.record(ctx, in.ID)
		if record == nil || err != nil {
			return false, err
		}
		return record.Status.Phase == v1beta1.PhaseDrained, fmt.Errorf("phase %s, timeline %+v", record.Status.Phase, record.Status.Timeline)
	})
}

// lifeboat is the CLI, built when a test first needs it.
var lifeboat = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return program.Lifeboat(context.Background(), filepath.Join(cache, "lifeboat", "e2e"))
})

// cli runs a command that has to succeed, as an administrator.
func (s *stage) cli(args ...string) {
	s.t.Helper()
	path, err := lifeboat()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.State().Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("lifeboat %q: %v\n%s", args, err, out)
	}
}
