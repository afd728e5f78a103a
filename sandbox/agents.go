package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// agents runs an agent for every machine with power and a Node. Each agent reads the metadata of
// its own instance.
type agents struct {
	s       *Sandbox
	program string
	loop    *background // nil: stopped

	mu     sync.Mutex // guards wanted
	wanted map[string]string
	change chan struct{}
	// running is by instance; only run uses it.
	running map[string]*agent
}

type agent struct {
	node       string
	supervisor *supervisor
	close      func() // stops its metadata service
}

// agentRetry is the retry interval for an agent that failed to start.
const agentRetry = time.Second

func newAgents(s *Sandbox) *agents {
	return &agents{s: s, change: make(chan struct{}, 1), running: map[string]*agent{}}
}

// StartAgents starts an agent on every node, and on new nodes. It does nothing if the agents run.
func (s *Sandbox) StartAgents() error {
	a := s.agents
	if a.loop != nil {
		return nil
	}
	program, err := findLifeboatd(s.opts.Lifeboatd)
	if err != nil {
		return err
	}
	a.program = program // set before run reads it
	a.loop = inBackground(a.run)
	return nil
}

// StopAgents stops all agents.
func (s *Sandbox) StopAgents() error {
	if s.agents == nil || s.agents.loop == nil {
		return nil
	}
	loop := s.agents.loop
	s.agents.loop = nil
	return loop.stop()
}

// want sets the instances that need an agent, with their Nodes' names.
func (a *agents) want(nodes map[string]string) {
	a.mu.Lock()
	same := maps.Equal(a.wanted, nodes)
	a.wanted = nodes
	a.mu.Unlock()
	if same {
		return
	}
	select {
	case a.change <- struct{}{}:
	default: // a change is queued already
	}
}

// run reconciles the agents until ctx ends, and then stops all.
func (a *agents) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.settle(context.WithoutCancel(ctx), nil)
		case <-a.change:
		case <-timer.C:
		}
		a.mu.Lock()
		wanted := maps.Clone(a.wanted)
		a.mu.Unlock()
		if err := a.settle(ctx, wanted); err != nil && ctx.Err() == nil {
			a.s.log.Warn("cannot reconcile the agents, retrying", "after", agentRetry, "err", err)
			timer.Reset(agentRetry)
		}
	}
}

// settle stops unwanted agents and starts missing ones.
func (a *agents) settle(ctx context.Context, wanted map[string]string) error {
	var errs []error
	for id, it := range a.running {
		if wanted[id] != it.node {
			errs = append(errs, it.supervisor.stop())
			it.close()
			a.s.partEnded(it.supervisor.name)
			delete(a.running, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if a.running[id] != nil {
			continue
		}
		it, err := a.start(ctx, id, wanted[id])
		if err != nil {
			errs = append(errs, fmt.Errorf("agent of node %s: %w", wanted[id], err))
			continue
		}
		a.running[id] = it
	}
	return errors.Join(errs...)
}

func (a *agents) start(ctx context.Context, instance, node string) (*agent, error) {
	kubeconfig, err := a.s.AgentKubeconfig(ctx, node)
	if err != nil {
		return nil, err
	}
	name := "agent-" + node
	part := Part{Name: name, Log: a.s.path(name + ".log")}
	options := process.Options{
		Name: name, Path: a.program, Dir: a.s.opts.Dir, LogFile: part.Log,
		Args: append([]string{"agent", "--node-name=" + node, "--health-probe-bind-address=0"}, a.s.opts.AgentArgs...),
	}
	closeService := func() {}
	if a.s.fleet != nil {
		options, err = a.realAgent(instance, kubeconfig, options)
	} else {
		options, part.Address, closeService, err = a.simulatedAgent(ctx, instance, kubeconfig, options)
	}
	if err != nil {
		return nil, err
	}
	k := &supervisor{
		name: name, log: a.s.log, started: func(pid int) { a.s.partStarted(part, pid) },
		launch: func(ctx context.Context) (*process.Process, error) { return process.Start(ctx, options) },
	}
	if err := k.start(ctx); err != nil {
		closeService()
		return nil, err
	}
	return &agent{node: node, supervisor: k, close: closeService}, nil
}

// simulatedAgent starts the agent of a simulated instance: a process of this machine, with its own
// metadata service.
func (a *agents) simulatedAgent(
	ctx context.Context, instance, kubeconfig string, o process.Options,
) (_ process.Options, address string, closeService func(), err error) {
	metrics, err := process.FreeAddress()
	if err != nil {
		return o, "", nil, err
	}
	// The service outlives this call: it ends with the agent.
	endpoint, closeService, err := a.s.cloud.server.States.IMDS.Serve(context.WithoutCancel(ctx), instance)
	if err != nil {
		return o, "", nil, err
	}
	if kubeconfig, err = a.s.linkedKubeconfig(LinkAgentsAPI, kubeconfig); err != nil {
		closeService()
		return o, "", nil, err
	}
	o.Args = append(o.Args, "--kubeconfig="+kubeconfig, "--metrics-bind-address="+metrics)
	o.Env = append(bareEnv(), "AWS_EC2_METADATA_SERVICE_ENDPOINT="+endpoint)
	return o, "http://" + metrics + "/metrics", closeService, nil
}
