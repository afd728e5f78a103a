package boottest

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
)

// Host has the settings of a machine. The zero value is a fast one.
type Host struct {
	bootagent.Settings
	// BootFor is from power on to the agent's start, and from its death to its restart.
	BootFor time.Duration
	// RegisterFor is from the kubelet's start until its node exists, and ReadyFor from then
	// until the node is Ready.
	RegisterFor, ReadyFor time.Duration
	// RunFor is how long image pulls and commands of --prepare take. Fails selects those that
	// fail, by a part of their text.
	RunFor time.Duration
	Fails  string
	// EnabledKubelet means that the image starts the kubelet at every boot, without the agent.
	// A gate delays it.
	EnabledKubelet, NoGate bool
	// NoAgent disables the agent; the kubelet starts on its own.
	NoAgent bool
	// Dice vary pauses; nil: they are constant.
	Dice   func() float64
	Logger logr.Logger
}

// Cuts are the services that a machine cannot reach.
type Cuts struct{ Metadata, AWS, Cluster bool }

// Entry is an event on a machine.
type Entry struct {
	At   time.Time
	What string
}

// Machine is the emulated machine of an instance: it has power when EC2 says so.
type Machine struct {
	ID     string
	region *Region
	host   Host

	mu             sync.Mutex
	on             bool
	disk           *Memory // persistent
	gate           *Memory // not persistent
	kubelet        kubelet
	node           *Node // nil: it has none
	mute           bool  // the kubelet cannot reach the API server
	cuts           Cuts
	process        *process // of the agent; nil: it does not run
	count          int      // number of effects so far
	dieAt          int      // number of the effect at which the agent is killed; 0: none
	suspendAt      int      // number of the effect before which the machine is suspended; 0: none
	asleep         chan struct{}
	suspendedSince time.Time // since when it is suspended
	slept          time.Duration
	log            []Entry
	wrong          []string
	ended          sync.WaitGroup
}

// kubelet is the machine's kubelet.
type kubelet struct {
	runs  bool
	start int // number of its starts
}

// Node is the machine's node in the cluster.
type Node struct {
	Name      string
	UID       int
	Ready     bool
	Heartbeat time.Time
	owned     bool // by a running kubelet
	beats     time.Time
}

// NewMachine creates the machine of an instance. Fleet or Follow notify it about changes of the
// instance.
func NewMachine(r *Region, id string, h Host) *Machine {
	if h.Dice == nil {
		h.Dice = func() float64 { return 0.5 }
	}
	return &Machine{ID: id, region: r, host: h, disk: &Memory{}}
}

// Follow applies a change of the instance.
func (m *Machine) Follow(c ec2.Change) {
	switch c.What {
	case ec2.Booted:
		if m.Suspended() { // it was hibernated, and wakes up on other hardware
			m.region.States.IMDS.ExpireTokens(m.ID)
			m.Wake()
			return
		}
		m.powerOn()
	case ec2.Rebooted:
		m.powerOff()
		m.powerOn()
	case ec2.PowerOff, ec2.WasTerminated, ec2.WasStopped:
		if c.Instance.Hibernated && c.What != ec2.WasTerminated {
			m.Suspend()
			return
		}
		m.powerOff()
	}
}

func (m *Machine) powerOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on {
		return
	}
	m.on, m.gate = true, &Memory{}
	m.note("power on")
	if m.host.NoAgent || m.host.EnabledKubelet && m.host.NoGate {
		m.startKubelet()
	}
	m.begin()
}

// powerOff cuts the power, and returns when nothing of the machine runs any more.
func (m *Machine) powerOff() {
	m.mu.Lock()
	if m.on {
		m.note("power off")
	}
	m.on = false
	m.stopKubelet()
	m.mu.Unlock()
	m.Kill()
	m.Wake()
	m.ended.Wait()
}

// Stop is a power cut, at the end of a test.
func (m *Machine) Stop() { m.powerOff() }

// Kill kills the agent. Its unit restarts it.
func (m *Machine) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
}

func (m *Machine) kill() {
	if m.process != nil {
		m.process.dead = true
		m.process.cancel()
		m.process = nil
	}
}

// KillAt kills the agent before its nth effect from now, once.
func (m *Machine) KillAt(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count, m.dieAt = 0, n
}

// SuspendAt suspends the machine before its nth effect from now, once.
func (m *Machine) SuspendAt(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count, m.suspendAt = 0, n
}

// Suspended reports whether the machine is suspended.
func (m *Machine) Suspended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asleep != nil
}

// Effects is the number of effects since KillAt was called.
func (m *Machine) Effects() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Suspend stops the machine's clock and processes until Wake, as a hypervisor does.
func (m *Machine) Suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspend()
}

func (m *Machine) suspend() {
	if m.asleep == nil {
		m.note("suspended")
		m.asleep, m.suspendedSince = make(chan struct{}), time.Now()
	}
}

// Wake ends Suspend.
func (m *Machine) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asleep != nil {
		m.note("awake")
		m.slept += time.Since(m.suspendedSince)
		close(m.asleep)
		m.asleep = nil
	}
}

// Cut sets what the machine cannot reach.
func (m *Machine) Cut(c Cuts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cuts = c
}
