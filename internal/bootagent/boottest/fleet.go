package boottest

import (
	"sync"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Fleet has the machines of all instances that a region launches from now on.
type Fleet struct {
	region *Region
	host   func(ec2.Instance) Host
	cancel func()

	mu       sync.Mutex
	machines map[string]*Machine
	order    []*Machine
}

// Attend creates the machine of each instance that is launched from now on, with the settings of
// host.
func Attend(r *Region, host func(ec2.Instance) Host) *Fleet {
	f := &Fleet{region: r, host: host, machines: map[string]*Machine{}}
	f.cancel = r.States.EC2.Subscribe(f.follow)
	return f
}

func (f *Fleet) follow(c ec2.Change) {
	f.mu.Lock()
	m := f.machines[c.Instance.ID]
	if m == nil {
		m = NewMachine(f.region, c.Instance.ID, f.host(c.Instance))
		f.machines[c.Instance.ID] = m
		f.order = append(f.order, m)
	}
	f.mu.Unlock()
	m.Follow(c)
}

// Machines are all machines, including former ones, the oldest first.
func (f *Fleet) Machines() []*Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*Machine(nil), f.order...)
}

// Stop cuts the power of all machines.
func (f *Fleet) Stop() {
	f.cancel()
	for _, m := range f.Machines() {
		m.Stop()
	}
}
