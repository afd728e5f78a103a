package instances

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/images"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// bootTime is the timeout of a boot on a busy machine.
const bootTime = 5 * time.Second

// Programs are the paths of the programs on an instance.
type Programs struct {
	Node       string // assets.Real.Node, a directory
	Kubernetes string
	Workload   string // of which the images are made
	Lifeboatd  string // for agents; may be empty
	CSI        string // assets.Paths.CSI, a driver for disks; may be empty
}

// Cluster is what an instance joins, for example *controlplane.ControlPlane.
type Cluster interface {
	CACert() []byte
	InsideKubeconfig(user string, groups ...string) (path string, err error)
}

// Options configure a Fleet. All except Log are required.
type Options struct {
	Dir string // directory of all files; it is created
	// Cgroup is the directory of their cgroups in each hierarchy: a plain name, no
	// other sandbox's.
	Cgroup   string
	VPC      *VPC
	Programs Programs
	Cluster  Cluster
	// Metadata serves an instance's metadata on a listener in it, until stop.
	Metadata func(ctx context.Context, instance string, listen func(context.Context) (net.Listener, error)) (stop func(), err error)
	Log      *slog.Logger
}

// Fleet implements machines.Hardware with namespaces. It is safe for concurrent use.
type Fleet struct {
	opts  Options
	proxy string // kube-proxy's kubeconfig

	mu      sync.Mutex // guards what follows
	on      map[string]*instance
	pods    map[string]int // the pod range of each instance, until it is terminated
	boots   int            // so far, for names
	cutting sync.WaitGroup // instances whose power is being cut
}

// NewFleet creates a fleet without instances, and the images that instances start with.
func NewFleet(opts Options) (*Fleet, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{opts: opts, on: map[string]*instance{}, pods: map[string]int{}}
	for _, dir := range []string{f.SharedDir(), f.imageDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("making a directory for instances: %w", err)
		}
	}
	if err := images.WriteFile(filepath.Join(f.imageDir(), imageFile), opts.Programs.Workload); err != nil {
		return nil, err
	}
	var err error
	f.proxy, err = opts.Cluster.InsideKubeconfig("system:kube-proxy") // RBAC knows it by this name
	return f, err
}

// SharedDir is this machine's directory behind SharedDir on instances.
func (f *Fleet) SharedDir() string { return filepath.Join(f.opts.Dir, "shared") }

func (f *Fleet) imageDir() string { return filepath.Join(f.opts.Dir, "images") }

// Dir is where the files and logs of an instance are.
func (f *Fleet) Dir(id string) string { return filepath.Join(f.opts.Dir, id) }

// Boot returns the boot id of a running instance; none if it ended without a request, so that it is
// started again.
func (f *Fleet) Boot(m machines.Machine) (id string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.on[m.ID]
	if i == nil {
		return "", false
	}
	if i.ended() {
		return "", true
	}
	return i.bootID, true
}

// Start boots an instance, and returns when its process 1 runs.
func (f *Fleet) Start(ctx context.Context, m machines.Machine, register *corev1.Node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.rangeOf(m.ID)
	if err != nil {
		return err
	}
	if err := room(1 + f.booting()); err != nil {
		return fmt.Errorf("booting: %w", err)
	}
	f.boots++
	i, err := f.boot(ctx, m.Instance, register, n)
	if err != nil {
		return fmt.Errorf("booting: %w", err)
	}
	f.on[m.ID] = i
	return nil
}

// Restart cuts the power and starts the instance again, with an empty disk, since its disk is its
// memory.
func (f *Fleet) Restart(ctx context.Context, m machines.Machine, register *corev1.Node) error {
	if err := f.Cut(ctx, m); err != nil {
		return err
	}
	return f.Start(ctx, m, register)
}

// Shutdown presses the power button: the kubelet stops the pods, then all processes stop. A second
// press has no effect, but an instance that has just booted may miss the first.
func (f *Fleet) Shutdown(_ context.Context, m machines.Machine) (done bool, err error) {
	f.mu.Lock()
	i := f.on[m.ID]
	f.mu.Unlock()
	if i == nil || i.ended() {
		return true, nil
	}
	return false, i.proc.Signal(powerButton)
}

// Cut cuts an instance's power. It returns when the instance is disconnected and killed; the
// cleanup continues.
func (f *Fleet) Cut(_ context.Context, m machines.Machine) error {
	f.mu.Lock()
	i := f.on[m.ID]
	delete(f.on, m.ID)
	f.mu.Unlock()
	if i == nil {
		return nil
	}
	if err := i.proc.Err(); err != nil { // nil: it has shut down, or runs
		f.opts.Log.Warn("instance had ended without a request", "instance", m.ID, "err", err)
	}
	err := i.unplug()
	f.cutting.Go(func() {
		if err := i.clear(); err != nil {
			f.opts.Log.Warn("instance not cleaned up", "instance", m.ID, "err", err)
		}
		if m.State == ec2.ShuttingDown || m.State == ec2.Terminated {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.pods, m.ID)
		}
	})
	return err
}

// Close cuts the power of all instances, and returns when only files are left.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	var all []string
	for id := range f.on {
		all = append(all, id)
	}
	f.mu.Unlock()
	var errs []error
	for _, id := range all {
		m := machines.Machine{}
		m.ID = id
		errs = append(errs, f.Cut(ctx, m))
	}
	f.cutting.Wait()
	return errors.Join(append(errs, Sweep(ctx, f.opts.Cgroup))...)
}

// Inside runs a child process on an instance: with its network, files and process ids. It ends with
// the instance.
func (f *Fleet) Inside(id string, o process.Options) process.Options {
	o.Dir, o.Unguarded = "/", true
	o.Enter = func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		i := f.on[id]
		if i == nil || i.ended() {
			return fmt.Errorf("instance %s has no power", id)
		}
		return enterAll(i.proc.PID())
	}
	return o
}

// booting counts the instances that do not yet use all their resources.
func (f *Fleet) booting() int {
	n := 0
	for _, i := range f.on {
		if time.Since(i.since) < bootTime {
			n++
		}
	}
	return n
}

// rangeOf returns the number of an instance's pod range: its own, or the first free one.
func (f *Fleet) rangeOf(id string) (int, error) {
	if n, ok := f.pods[id]; ok {
		return n, nil
	}
	taken := map[int]bool{}
	for _, n := range f.pods {
		taken[n] = true
	}
	for n := range mostPods {
		if !taken[n] {
			f.pods[id] = n
			return n, nil
		}
	}
	return 0, fmt.Errorf("there are no more than %d instances", mostPods)
}
