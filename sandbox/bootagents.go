package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// bootAgents simulates the init process of machines whose user data starts Lifeboat's agent at
// boot. It runs that agent while the machine has power, and the kubelet when the agent starts it.
// The agent's files are the machine's disk, which survives a stop.
type bootAgents struct {
	s     *Sandbox
	gates *machines.Gates
	// kubeconfig writes a node's kubelet kubeconfig, and returns its path.
	kubeconfig func(node string) (string, error)
	loop       *background
	look       chan struct{}
	// running is by instance; only run uses it, and disks, the existing disks.
	running map[string]*machineAgent
	disks   map[string]bool
}

// machineAgent is the init process of one machine in one boot.
type machineAgent struct {
	boot       string
	supervisor *supervisor
	orders     *os.File // a named pipe for the agent's commands
	close      func()   // stops its metadata service
	asleep     bool     // it is hibernated
}

// initRetry is the retry interval for a machine that failed to start.
const initRetry = time.Second

// bootsByAgent reports whether a machine's user data starts the agent that starts its kubelet.
func bootsByAgent(in ec2.Instance) bool {
	_, ok := machines.BootAgent(in)
	return ok
}

func newBootAgents(s *Sandbox) *bootAgents {
	return &bootAgents{
		s: s, gates: machines.NewGates(s.EC2(), bootsByAgent), look: make(chan struct{}, 1),
		kubeconfig: func(node string) (string, error) {
			return s.cluster.UserKubeconfig("system:node:"+node, "system:nodes")
		},
		running: map[string]*machineAgent{}, disks: map[string]bool{},
	}
}

func (i *bootAgents) start() { i.loop = inBackground(i.run) }

func (i *bootAgents) stop() error {
	if i == nil || i.loop == nil {
		return nil
	}
	return i.loop.stop()
}

// run reconciles the machines until ctx ends, and then cuts the power of all.
func (i *bootAgents) run(ctx context.Context) error {
	cancel := i.s.EC2().Subscribe(func(ec2.Change) {
		select {
		case i.look <- struct{}{}:
		default: // a change is queued already
		}
	})
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			var errs []error
			for id := range i.running {
				errs = append(errs, i.cut(id))
			}
			return errors.Join(errs...)
		case <-i.look:
		case <-timer.C:
		}
		if wake := i.pass(ctx, time.Now()); !wake.IsZero() {
			timer.Reset(max(0, time.Until(wake)))
		}
	}
}

// pass reconciles once, and returns the time of the next pass; zero: on a change.
func (i *bootAgents) pass(ctx context.Context, now time.Time) (wake time.Time) {
	listed := map[string]bool{}
	for _, in := range i.s.EC2().Instances() {
		listed[in.ID] = in.State != ec2.Terminated
		if !bootsByAgent(in) {
			continue
		}
		retry, err := i.tend(ctx, in, now)
		if err != nil && ctx.Err() == nil {
			i.s.log.Warn("cannot reconcile the machine, retrying", "instance", in.ID, "after", initRetry, "err", err)
			retry = now.Add(initRetry)
		}
		if !retry.IsZero() && (wake.IsZero() || retry.Before(wake)) {
			wake = retry
		}
	}
	for id := range i.disks {
		if !listed[id] {
			i.discard(id)
		}
	}
	return wake
}

// tend reconciles one machine's init process with the state of its instance.
func (i *bootAgents) tend(ctx context.Context, in ec2.Instance, now time.Time) (retry time.Time, err error) {
	it := i.running[in.ID]
	switch {
	case it != nil && in.Hibernated && in.BootID == it.boot && in.State != ec2.Terminated:
		return retry, it.sleep(!in.Powered)
	case it != nil && in.Powered && it.boot == in.BootID:
		return retry, nil
	case it != nil:
		err = i.cut(in.ID)
	}
	if !in.Powered || err != nil {
		return retry, err
	}
	return i.powerOn(ctx, in, now)
}

// powerOn starts the init process of a machine after its boot time.
func (i *bootAgents) powerOn(ctx context.Context, in ec2.Instance, now time.Time) (retry time.Time, err error) {
	boots, err := machines.BootTime(in, i.s.bootDelay(in.ID))
	if err != nil {
		return retry, err
	}
	// Launch times are whole seconds, so a boot may be up to one shorter.
	if ready := in.LaunchTime.Add(boots); now.Before(ready) {
		return ready, nil
	}
	it, err := i.boot(ctx, in)
	if err != nil {
		return retry, fmt.Errorf("booting: %w", err)
	}
	i.running[in.ID] = it
	return retry, nil
}

// boot starts the init process of a machine.
func (i *bootAgents) boot(ctx context.Context, in ec2.Instance) (_ *machineAgent, err error) {
	it := &machineAgent{boot: in.BootID, close: func() {}}
	defer func() {
		if err != nil {
			it.close()
			if it.orders != nil {
				it.orders.Close()
			}
		}
	}()
	i.disks[in.ID] = true
	if err := i.mount(in); err != nil {
		return nil, err
	}
	if it.orders, err = newOrders(i.orders(in.ID)); err != nil {
		return nil, err
	}
	// The service outlives this call: it ends with the machine's power.
	endpoint, closeService, err := i.s.cloud.server.States.IMDS.Serve(context.WithoutCancel(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	it.close = closeService
	options, err := i.agent(in, endpoint)
	if err != nil {
		return nil, err
	}
	part := Part{Name: options.Name, Log: options.LogFile}
	it.supervisor = &supervisor{
		name: options.Name, log: i.s.log, started: func(pid int) { i.s.partStarted(part, pid) },
		launch: func(ctx context.Context) (*process.Process, error) { return process.Start(ctx, options) },
	}
	if err := it.supervisor.start(ctx); err != nil {
		return nil, err
	}
	go i.obey(in.ID, it)
	return it, nil
}

// mount creates a machine's disk, if it has none, and clears its memory.
func (i *bootAgents) mount(in ec2.Instance) error {
	if err := os.RemoveAll(i.memory(in.ID)); err != nil {
		return fmt.Errorf("clearing its memory: %w", err)
	}
	for _, dir := range []string{i.disk(in.ID), i.memory(in.ID)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making its disk: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(i.memory(in.ID), bootIDFile), []byte(in.BootID+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing its boot id: %w", err)
	}
	return nil
}

// newOrders creates a named pipe. It is open for writing too, so that it does not end when one
// writing command ends.
func newOrders(path string) (*os.File, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("making its pipe: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening its pipe: %w", err)
	}
	return f, nil
}

// The agent's commands about the kubelet.
const (
	startKubelet = "start"
	stopKubelet  = "stop"
)

// obey executes the agent's commands until the pipe is closed.
func (i *bootAgents) obey(id string, it *machineAgent) {
	for lines := bufio.NewScanner(it.orders); lines.Scan(); {
		switch order := lines.Text(); order {
		case startKubelet:
			i.gates.Open(id, it.boot)
		case stopKubelet:
			i.gates.Shut(id)
		default:
			i.s.log.Warn("unknown command of a machine's agent", "instance", id, "order", order)
		}
	}
}

// cut cuts a machine's power: its programs get no time to stop.
func (i *bootAgents) cut(id string) error {
	it := i.running[id]
	delete(i.running, id)
	i.gates.Shut(id)
	it.close()
	err := errors.Join(it.sleep(false), it.supervisor.kill(), it.supervisor.stop())
	return errors.Join(err, it.orders.Close())
}

// sleep pauses or resumes a machine's programs.
func (it *machineAgent) sleep(asleep bool) error {
	if it.asleep == asleep {
		return nil
	}
	p, err := it.supervisor.current()
	if err != nil {
		return err
	}
	it.asleep = asleep
	signal := syscall.SIGCONT
	if asleep {
		signal = syscall.SIGSTOP
	}
	if err := syscall.Kill(p.PID(), signal); err != nil {
		return fmt.Errorf("hibernating a machine's agent: %w", err)
	}
	return nil
}

// discard deletes the disk of a terminated instance.
func (i *bootAgents) discard(id string) {
	if i.running[id] != nil {
		if err := i.cut(id); err != nil {
			i.s.log.Warn("machine not ended", "instance", id, "err", err)
		}
	}
	if err := os.RemoveAll(i.path(id)); err != nil {
		i.s.log.Warn("disk not removed", "instance", id, "err", err)
		return
	}
	delete(i.disks, id)
}

func (i *bootAgents) path(id string) string   { return i.s.path(filepath.Join("machines", id)) }
func (i *bootAgents) disk(id string) string   { return filepath.Join(i.path(id), "disk") }
func (i *bootAgents) memory(id string) string { return filepath.Join(i.path(id), "memory") }
func (i *bootAgents) orders(id string) string { return filepath.Join(i.memory(id), "orders") }
