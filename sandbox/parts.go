package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/emulator/eks"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// The steps of Up. Each receives a function that reports details.

func (s *Sandbox) ensurePrograms(ctx context.Context, detail func(string)) error {
	var err error
	out := &lineWriter{line: detail}
	if s.opts.RealNodes {
		if err := instances.Missing(); err != nil {
			return err
		}
		s.programs, err = assets.EnsureReal(ctx, out)
	} else {
		s.programs, err = assets.Ensure(ctx, out)
	}
	if err != nil {
		return err
	}
	what := "Kubernetes " + s.programs.KubernetesVersion
	if s.opts.RealNodes {
		what += ", containerd " + s.programs.Real.ContainerdVersion
	} else {
		what += ", kwok " + s.programs.KwokVersion
	}
	if s.opts.Karpenter {
		ensure := assets.EnsureKarpenter
		if s.opts.OlderKarpenter {
			ensure = assets.EnsureOlderKarpenter
		}
		with, err := ensure(ctx, out)
		if err != nil {
			return err
		}
		s.programs.Karpenter, s.programs.KarpenterVersion = with.Karpenter, with.KarpenterVersion
		what += ", Karpenter " + with.KarpenterVersion
	}
	if s.opts.Disks {
		with, err := assets.EnsureCSI(ctx, out)
		if err != nil {
			return err
		}
		s.programs.CSI, s.programs.CSIVersion = with.CSI, with.CSIVersion
		what += ", csi-attacher " + with.CSIVersion
	}
	detail(what)
	return nil
}

func (s *Sandbox) startControlPlane(ctx context.Context, detail func(string)) error {
	options := controlplane.Options{
		Binary: s.programs.Kubernetes, Dir: s.path("control-plane"), NodeMonitorGracePeriod: nodeGrace,
		APIServerArgs: s.opts.APIServerArgs,
	}
	if s.opts.RealNodes {
		vpc, err := instances.NewVPC()
		if err != nil {
			return err
		}
		s.vpc, options.Network, options.NodeMonitorGracePeriod = vpc, vpc, realNodeGrace
	}
	cluster, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	s.cluster = cluster
	s.updateState(func(st *State) { st.Kubeconfig = cluster.Kubeconfig() })
	s.partStarted(s.clusterPart(), cluster.PID())
	if s.opts.Chaos {
		s.clusterKeeper = inBackground(s.keepCluster)
	}
	detail("API server on " + cluster.URL())
	return cluster.WaitDefaultServiceAccount(ctx, "default")
}

func (s *Sandbox) clusterPart() Part {
	return Part{
		Name: "control plane", Address: s.cluster.URL(), Version: s.programs.KubernetesVersion, Log: s.cluster.LogFile(),
	}
}

func (s *Sandbox) startCloud(_ context.Context, detail func(string)) error {
	c, err := newCloud(s.opts, s.log)
	if err != nil {
		return err
	}
	s.cloud = c
	c.server.States.EKS.SetCluster(eks.Cluster{
		Name: clusterName, Version: minor(s.programs.KubernetesVersion), Endpoint: s.cluster.URL(),
		CA: s.RESTConfig().CAData, ServiceCIDR: controlplane.ServiceCIDR,
	})
	s.updateState(func(st *State) { st.AWSEndpoint = c.endpoint() })
	s.partStarted(Part{Name: "AWS emulator", Address: c.endpoint(), Log: s.path("sandbox.log")}, os.Getpid())
	detail(c.endpoint())
	if s.vpc == nil {
		return nil
	}
	return s.vpc.Expose(net.JoinHostPort(s.PodHost(), podPort), c.gate.Addr().String())
}

// minor formats a version as EKS does: 1.36 for v1.36.3.
func minor(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

func (s *Sandbox) startMachines(ctx context.Context, detail func(string)) error {
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	hardware, err := s.hardware(ctx, client)
	if err != nil {
		return err
	}
	s.agents = newAgents(s)
	operator := machines.New(s.machineCloud(), client, hardware, machines.Options{
		BootDelay: s.bootDelay, Region: s.opts.Region, Log: s.log, Running: s.agents.want,
	})
	if s.opts.Agents {
		if err := s.StartAgents(); err != nil {
			return err
		}
	}
	s.machines = inBackground(operator.Run)
	if s.opts.RealNodes {
		detail("instances are real, in namespaces of this machine")
	} else {
		detail("nodes register " + describeBoot(s.opts.BootDelay) + " after launch")
	}
	return nil
}

// machineCloud is the cloud that the operator sees. Simulated machines whose user data starts the
// agent get an init process; real ones have their own.
func (s *Sandbox) machineCloud() machines.Cloud {
	if s.opts.RealNodes {
		return s.EC2()
	}
	s.bootAgents = newBootAgents(s)
	s.bootAgents.start()
	return s.bootAgents.gates
}

// hardware selects simulated or real instances.
func (s *Sandbox) hardware(ctx context.Context, client kubernetes.Interface) (machines.Hardware, error) {
	if s.opts.RealNodes {
		fleet, err := s.newFleet()
		s.fleet = fleet
		return fleet, err
	}
	return machines.NewSimulated(client), s.startKwok(ctx)
}

// partStarted records that a part was started or restarted.
func (s *Sandbox) partStarted(part Part, pid int) {
	part.PID = pid
	s.writeState(func(st *State) { st.SetPart(part) })
}

// partEnded records that a part has ended, and is not started again. Its process id can be another
// process's soon.
func (s *Sandbox) partEnded(name string) {
	s.writeState(func(st *State) { st.RemovePart(name) })
}

func (s *Sandbox) writeState(change func(*State)) {
	s.updateState(func(st *State) {
		change(st)
		if err := st.Write(); err != nil {
			s.log.Warn("state file not written", "err", err)
		}
	})
}

func (s *Sandbox) wire(ctx context.Context, detail func(string)) error {
	w := s.Wiring()
	applied, err := awssetup.Apply(ctx, s.WiringClients(), w)
	if err != nil {
		return err
	}
	s.updateState(func(st *State) { st.QueueURL, st.DeadLetterURL = applied.QueueURL, applied.DeadLetterURL })
	var rules []string
	for _, r := range w.Rules {
		rules = append(rules, strings.TrimPrefix(r.Name, "lifeboat-"+clusterName+"-"))
	}
	detail("queue " + w.Queue.Name + ", rules " + strings.Join(rules, ", "))
	return s.makeKarpenterQueue(ctx)
}

// WiringClients are clients of the emulated AWS for awssetup.Apply.
func (s *Sandbox) WiringClients() awssetup.Clients {
	cfg := s.AWSConfig()
	return awssetup.NewClients(cfg)
}

// StopAPIServer kills the control plane, as in an outage.
func (s *Sandbox) StopAPIServer() {
	s.clusterMu.Lock()
	defer s.clusterMu.Unlock()
	s.clusterDown = true
	s.cluster.Kill9()
}

// StartAPIServer starts the control plane again with its data and its port.
func (s *Sandbox) StartAPIServer(ctx context.Context) error {
	s.clusterMu.Lock()
	defer s.clusterMu.Unlock()
	s.clusterDown = false
	return s.restartCluster(ctx)
}

// clusterPoll is how often a killed control plane is looked for.
const clusterPoll = 200 * time.Millisecond

// keepCluster starts the control plane again when something else than StopAPIServer has ended it.
func (s *Sandbox) keepCluster(ctx context.Context) error {
	for sleep.For(ctx, clusterPoll) {
		s.clusterMu.Lock()
		ended := false
		select {
		case <-s.cluster.Done():
			ended = !s.clusterDown
		default:
		}
		if ended {
			if err := s.restartCluster(ctx); err != nil {
				s.log.Warn("control plane not restarted, retrying", "err", err)
			}
		}
		s.clusterMu.Unlock()
	}
	return nil
}

// restartCluster starts the control plane again; clusterMu is held.
func (s *Sandbox) restartCluster(ctx context.Context) error {
	if err := s.cluster.Restart(ctx); err != nil {
		return err
	}
	s.partStarted(s.clusterPart(), s.cluster.PID())
	if s.kwok == nil {
		return nil
	}
	// kwok may have missed changes during the outage, so it restarts.
	return s.kwok.kill()
}

// StopAWS makes the AWS emulator unreachable, as in an outage. Its own time continues.
func (s *Sandbox) StopAWS() { s.cloud.gate.shut(true) }

// StartAWS makes it reachable again.
func (s *Sandbox) StartAWS() { s.cloud.gate.shut(false) }

// background is a function that runs until stop.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // read after done
}

func inBackground(run func(context.Context) error) *background {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = run(ctx)
	}()
	return b
}

// stop ends the function and returns its error.
func (b *background) stop() error {
	b.cancel()
	<-b.done
	return b.err
}

// waitFor calls ok every 50 ms until it returns true, or ctx ends.
func waitFor(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		done, err := ok(ctx)
		if done {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx)), last)
		case <-tick.C:
		}
	}
}
