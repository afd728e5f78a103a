package boottest

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/boot"
)

// Host says what a machine is like. The zero value is a fast one.
type Host struct {
	boot.Settings
	// BootFor is from power to the agent's start, and from its death to its next one.
	BootFor time.Duration
	// RegisterFor is from the kubelet's start until its node is there, and ReadyFor
	// from then until that is Ready.
	RegisterFor, ReadyFor time.Duration
	// RunFor is how long pulls of images and commands of --prepare take, Fails which of
	// them fail, by a text in them.
	RunFor time.Duration
	Fails  string
	// EnabledKubelet is started at every boot by whoever made the image, whatever the
	// agent says. It waits behind the gate if that stands before it.
	EnabledKubelet, NoGate bool
	// NoAgent leaves the agent off; the kubelet starts by itself.
	NoAgent bool
	// Dice vary pauses; nil: they are not varied.
	Dice   func() float64
	Logger logr.Logger
}

// Cuts are what a machine cannot reach.
type Cuts struct{ Metadata, AWS, Cluster bool }

// Entry is something that happened on a machine.
type Entry struct {
	At   time.Time
	What string
}

// Machine is an emulated instance as a machine: it has power when EC2 says so.
type Machine struct {
	ID     string
	region *Region
	host   Host

	mu      sync.Mutex
	on      bool
	disk    *Memory // outlives the power
	gate    *Memory // does not
	kubelet kubelet
	node    *Node // nil: there is none
	mute    bool  // the kubelet does not reach the API server
	cuts    Cuts
	life    *life // of the agent; nil: it does not run
	count   int   // effects so far
	dieAt   int   // effect at which the agent is killed; 0: none
	dozeAt  int   // effect before which the machine is suspended; 0: none
	asleep  chan struct{}
	dozed   time.Time // since when it is asleep
	slept   time.Duration
	log     []Entry
	wrong   []string
	ended   sync.WaitGroup
}

// kubelet is the machine's kubelet.
type kubelet struct {
	runs  bool
	start int // counts its starts
}

// Node is the machine's node as the cluster has it.
type Node struct {
	Name      string
	UID       int
	Ready     bool
	Heartbeat time.Time
	owned     bool // by a kubelet that runs
	beats     time.Time
}

// NewMachine makes the machine of an instance. It follows the instance's power once it is
// told of changes, by Fleet or by Follow.
func NewMachine(r *Region, id string, h Host) *Machine {
	if h.Dice == nil {
		h.Dice = func() float64 { return 0.5 }
	}
	return &Machine{ID: id, region: r, host: h, disk: &Memory{}}
}

// Follow follows one change of the instance.
func (m *Machine) Follow(c ec2.Change) {
	switch c.What {
	case ec2.Booted:
		if m.Suspended() { // it was hibernated, and finds other hardware
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

// Kill kills the agent. Its unit starts it again.
func (m *Machine) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
}

func (m *Machine) kill() {
	if m.life != nil {
		m.life.dead = true
		m.life.cancel()
		m.life = nil
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
	m.count, m.dozeAt = 0, n
}

// Suspended reports whether it is.
func (m *Machine) Suspended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asleep != nil
}

// Effects is how many there were since KillAt was called.
func (m *Machine) Effects() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Suspend stops the machine's clock and all that it does until Wake, as a hypervisor does.
func (m *Machine) Suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspend()
}

func (m *Machine) suspend() {
	if m.asleep == nil {
		m.note("suspended")
		m.asleep, m.dozed = make(chan struct{}), time.Now()
	}
}

// Wake ends Suspend.
func (m *Machine) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asleep != nil {
		m.note("awake")
		m.slept += time.Since(m.dozed)
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
