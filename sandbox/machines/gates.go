package machines

import (
	"fmt"
	"sync"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Gates is a cloud with machines whose kubelet waits: the agent that their user data starts at boot
// starts it. For an operator such a machine has power only while its kubelet should run.
type Gates struct {
	cloud Cloud
	// gated lists the machines that have such an agent.
	gated func(ec2.Instance) bool

	mu    sync.Mutex
	open  map[string]kubeletRun // by instance id
	runs  map[string]kubeletRun // the last one, open or not
	next  int
	tells map[int]func(ec2.Change)
}

// kubeletRun is one run of a kubelet.
type kubeletRun struct {
	boot string // the machine's boot that it belongs to
	n    int    // of this boot, from 1
}

// NewGates returns gates that are all closed.
func NewGates(cloud Cloud, gated func(ec2.Instance) bool) *Gates {
	return &Gates{cloud: cloud, gated: gated, open: map[string]kubeletRun{}, runs: map[string]kubeletRun{}, tells: map[int]func(ec2.Change){}}
}

// Open starts the kubelet of a machine, in the given boot: a later boot starts with a closed gate. It
// does nothing if it is open.
func (g *Gates) Open(instanceID, bootID string) {
	g.mu.Lock()
	changed := g.open[instanceID].boot != bootID
	if changed {
		last := g.runs[instanceID]
		if last.boot != bootID {
			last = kubeletRun{boot: bootID}
		}
		last.n++
		g.open[instanceID], g.runs[instanceID] = last, last
	}
	g.mu.Unlock()
	if changed {
		g.tell(instanceID)
	}
}

// Shut stops the kubelet of a machine.
func (g *Gates) Shut(instanceID string) {
	g.mu.Lock()
	_, was := g.open[instanceID]
	delete(g.open, instanceID)
	g.mu.Unlock()
	if was {
		g.tell(instanceID)
	}
}

// Instances lists the cloud's instances. BootID differs for each run of a gated kubelet.
func (g *Gates) Instances() []ec2.Instance {
	all := g.cloud.Instances()
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, in := range all {
		if !g.gated(in) {
			continue
		}
		open, ok := g.open[in.ID]
		ok = ok && open.boot == in.BootID
		all[i].Powered = in.Powered && ok
		if ok && open.n > 1 {
			all[i].BootID = fmt.Sprintf("%s-%d", in.BootID, open.n)
		}
	}
	return all
}

// Subnets returns the cloud's subnets.
func (g *Gates) Subnets() []ec2.Subnet { return g.cloud.Subnets() }

// Halted notifies the cloud.
func (g *Gates) Halted(instanceID string) { g.cloud.Halted(instanceID) }

// Subscribe calls f with every change of the cloud, and of a gate.
func (g *Gates) Subscribe(f func(ec2.Change)) (cancel func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := g.next
	g.next++
	g.tells[id] = f
	end := g.cloud.Subscribe(f)
	return func() {
		end()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.tells, id)
	}
}

func (g *Gates) tell(instanceID string) {
	g.mu.Lock()
	var all []func(ec2.Change)
	for _, f := range g.tells {
		all = append(all, f)
	}
	g.mu.Unlock()
	for _, f := range all {
		f(ec2.Change{Instance: ec2.Instance{ID: instanceID}})
	}
}
