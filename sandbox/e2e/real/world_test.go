//go:build e2e

package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/need"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

const (
	// poolLabel separates the nodes of the tests: each has its own interrupted node.
	poolLabel = "lifeboat.dev/pool"
	safePool  = "safe" // for replacements
	loadPool  = "load" // for the load
)

// world is the sandbox that all tests share: one control plane, one node for replacements and one
// for the load. Each test adds the node that it interrupts.
type world struct {
	*sandbox.Sandbox
	client client.Client

	mu  sync.Mutex
	off map[string]time.Time // when an instance's power went off, by its ID
}

// theWorld is created by the first test that needs it.
var theWorld = sync.OnceValues(newWorld)

func TestMain(m *testing.M) {
	os.Exit(runAndTidy(m))
}

func runAndTidy(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard()) // lifeboatd writes its own log
	if lifeboatd := os.Getenv(asVictimEnv); lifeboatd != "" {
		if err := victim(lifeboatd); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	code := m.Run()
	if instances.Missing() != nil {
		return code
	}
	w, err := theWorld()
	if err != nil {
		return max(code, 1)
	}
	if err := w.Down(); err != nil {
		fmt.Fprintln(os.Stderr, "taking the sandbox down:", err)
		return 1
	}
	return code
}

// needWorld returns the world; it skips or fails the test without one.
func needWorld(t *testing.T) *stage {
	t.Helper()
	if err := instances.Missing(); err != nil {
		need.Missing(t, err.Error())
	}
	w, err := theWorld()
	if err != nil {
		t.Fatal(err)
	}
	return &stage{world: w, t: t}
}

func newWorld() (*world, error) {
	lifeboatd, err := buildLifeboatd()
	if err != nil {
		return nil, err
	}
	s, err := sandbox.New(sandbox.Options{
		// A fixed name, different from other sandboxes: each run finds and removes what a killed
		// run left.
		Name: "e2e-real", Lifeboatd: lifeboatd, RealNodes: true, Karpenter: true, KarpenterQueue: "karpenter",
		Disks: true, OutOfServiceTaint: true,
		Progress: func(step sandbox.Step) {
			if step.Done {
				fmt.Printf("# %s: %s (%.1f s)\n", step.Name, step.Detail, step.Took.Seconds())
			}
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // it may have to build Kubernetes first
	defer cancel()
	if err := s.Up(ctx); err != nil {
		return nil, err
	}
	w, err := newWorldOf(s)
	if err == nil {
		err = w.survivors()
	}
	if err != nil {
		return nil, errors.Join(err, s.Down())
	}
	return w, nil
}

// newWorldOf creates the world on a running sandbox.
func newWorldOf(s *sandbox.Sandbox) (*world, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(s.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	w := &world{Sandbox: s, client: c, off: map[string]time.Time{}}
	s.EC2().Subscribe(func(c ec2.Change) {
		if c.What == ec2.PowerOff {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.off[c.Instance.ID] = time.Now()
		}
	})
	return w, nil
}

func buildLifeboatd() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return program.Lifeboatd(context.Background(), filepath.Join(cache, "lifeboat", "e2e"))
}

// survivors launches the nodes that stay: one for replacements and one for the load. The first has
// a PreferNoSchedule taint, so the scheduler places pods on the interrupted node first.
func (w *world) survivors() error {
	safe, err := w.boot(safePool, nil, machines.TagNodeTaints, poolLabel+"="+safePool+":PreferNoSchedule")
	if err != nil {
		return err
	}
	load, err := w.boot(loadPool, nil, machines.TagNodeTaints, poolLabel+"="+loadPool+":NoSchedule")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, in := range []ec2.Instance{safe, load} {
		if err := w.waitReady(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// boot launches an instance whose node is in a pool; tags are further key-value pairs.
func (w *world) boot(pool string, spot *ec2.SpotOptions, tags ...string) (ec2.Instance, error) {
	all := map[string]string{machines.TagNodeLabels: poolLabel + "=" + pool}
	for pair := range slices.Chunk(tags, 2) {
		all[pair[0]] = pair[1]
	}
	in, err := w.EC2().Launch(ec2.LaunchInput{
		ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Spot: spot,
		Tags: all,
	})
	if err != nil {
		return ec2.Instance{}, err
	}
	return in[0], nil
}

// waitReady waits until a node is Ready and schedulable: the controller manager removes the
// not-ready taint after the Ready condition.
func (w *world) waitReady(ctx context.Context, in ec2.Instance) error {
	return wait(ctx, "node "+in.PrivateDNSName+" to be Ready", func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		if err := w.client.Get(ctx, types.NamespacedName{Name: in.PrivateDNSName}, node); err != nil {
			return false, err
		}
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		return ready && !tainted, fmt.Errorf("its conditions are %+v, its taints %+v", node.Status.Conditions, node.Spec.Taints)
	})
}

// powerOff returns when an instance's power went off; zero if it is on.
func (w *world) powerOff(id string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.off[id]
}

// wait polls ok until it returns true or ctx ends.
func wait(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		done, err := ok(ctx)
		if done {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s; last: %w", what, last)
		case <-tick.C:
		}
	}
}
