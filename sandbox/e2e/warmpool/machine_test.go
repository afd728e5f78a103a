package warmpool

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// machine is the operating system of an instance. Its disk survives a stop.
type machine struct {
	w  *world
	id string
	// metadata and cloud are its connections to instance metadata and to AWS.
	metadata, cloud *network
	disk            disk
	files           boottest.Memory // the agent's files, on the disk

	mu      sync.Mutex
	off     context.CancelFunc // nil: no power
	powered context.Context    // done at the power off
	kubelet context.CancelFunc // nil: not running
	since   time.Time          // start of the kubelet
}

// disk is the state that survives a power off.
type disk struct {
	mu sync.Mutex
	diskState
}

type diskState struct {
	// begun is set when the first boot begins, done when the setup is complete.
	begun, done bool
	// installed is set when nodeup is installed, joined when it has started the kubelet.
	installed, joined bool
}

func (d *disk) set(f func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *disk) isDone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// handleChange powers machines on and off as EC2 does.
func (w *world) handleChange(ctx context.Context, c ec2.Change) {
	switch c.What {
	case ec2.Booted:
		w.machine(c.Instance.ID).on(ctx)
	case ec2.PowerOff, ec2.WasStopped:
		w.machine(c.Instance.ID).powerOff(ctx, false)
	case ec2.WasTerminated:
		w.machine(c.Instance.ID).powerOff(ctx, true)
	}
}

// all returns all machines, also terminated ones.
func (w *world) all() []*machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.machines))
}

func (w *world) machine(id string) *machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.machines[id]
	if m == nil {
		m = &machine{
			w: w, id: id,
			metadata: &network{w: w, handler: w.cloud.States.IMDS.Handler(id), fast: true},
			cloud:    &network{w: w, handler: w.cloud.Handler()},
		}
		w.machines[id] = m
	}
	return m
}

func (m *machine) on(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off != nil {
		return
	}
	ctx, m.off = context.WithCancel(ctx)
	m.powered = ctx
	m.w.running.Go(func() {
		if !sleep.For(ctx, m.w.between(4*time.Second, 12*time.Second)) { // the kernel starts
			return
		}
		if m.w.often(0.5) { // the network restarts once during the setup
			m.w.running.Go(func() {
				if sleep.For(ctx, m.w.between(0, 90*time.Second)) {
					down := m.w.between(2*time.Second, 30*time.Second)
					m.cloud.restart(down)
					m.metadata.restart(down)
				}
			})
		}
		m.w.way.boot(ctx, m)
	})
}

// powerOff turns the power off; ctx is the world's.
func (m *machine) powerOff(ctx context.Context, forGood bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off != nil {
		m.off()
		m.off = nil
	}
	m.kill()
	m.w.running.Go(func() { m.silence(ctx, forGood) })
}

// kill ends the kubelet. The caller must hold the lock.
func (m *machine) kill() {
	if m.kubelet != nil {
		m.kubelet()
		m.kubelet = nil
	}
}

// startKubelet starts the kubelet unless it runs.
func (m *machine) startKubelet() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off == nil || m.kubelet != nil {
		return
	}
	ctx, stop := context.WithCancel(m.powered)
	m.kubelet, m.since = stop, time.Now()
	m.w.running.Go(func() { m.live(ctx) })
}

func (m *machine) stopKubelet() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
}

// isReadyAt reports whether the node was Ready at a recent time.
func (m *machine) isReadyAt(at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.isDone() && m.kubelet != nil && at.Sub(m.since) >= joinsIn
}

func (m *machine) hasKubelet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kubelet != nil
}

// setUp is the work of a first boot: packages, images, certificates. A later call returns at once.
// A power off during the setup loses the work.
func (m *machine) setUp(ctx context.Context) bool {
	return m.disk.isDone() || sleep.For(ctx, m.w.between(30*time.Second, 120*time.Second)) && m.noteDone()
}

func (m *machine) noteDone() bool {
	m.disk.set(func(d *disk) { d.done = true })
	return true
}
