package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/sandbox/clusterdns"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// realNodeGrace is nodeGrace for real kubelets, which share the processors with everything they
// run.
const realNodeGrace = 20 * time.Second

// cgroupName distinguishes this sandbox's cgroups from those of any other, also from one with the
// same name in another directory.
func cgroupName(o Options) string {
	sum := sha256.Sum256([]byte(o.Dir))
	return "lifeboat-" + o.Name + "-" + hex.EncodeToString(sum[:4])
}

func (s *Sandbox) newFleet() (*instances.Fleet, error) {
	lifeboatd, err := s.realLifeboatd()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if err := s.vpc.ServeDNS(clusterdns.Services(client)); err != nil {
		return nil, err
	}
	return instances.NewFleet(instances.Options{
		Dir: s.path("instances"), Cgroup: cgroupName(s.opts), VPC: s.vpc, Cluster: s.cluster, Log: s.log,
		Programs: instances.Programs{
			Node: s.programs.Real.Node, Kubernetes: s.programs.Kubernetes, Workload: s.programs.Real.Workload, Lifeboatd: lifeboatd,
			CSI: s.programs.CSI,
		},
		Metadata: s.cloud.server.States.IMDS.ServeOn,
	})
}

// realLifeboatd returns the path of lifeboatd without symbolic links, because an instance mounts
// its directory; empty if there is no lifeboatd.
func (s *Sandbox) realLifeboatd() (string, error) {
	path, err := findLifeboatd(s.opts.Lifeboatd)
	switch {
	case err != nil && s.opts.NoLifeboat && !s.opts.Agents:
		return "", nil
	case err != nil:
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("finding lifeboatd: %w", err)
	}
	return filepath.Abs(path)
}

// podPort is the port of the emulated AWS in the VPC.
const podPort = "4566"

// PodHost is this machine as pods on real instances reach it, by the ports that are exposed to them.
func (s *Sandbox) PodHost() string { return s.vpc.Address() }

// PodAWSEndpoint is the emulated AWS as pods on real instances reach it.
func (s *Sandbox) PodAWSEndpoint() string {
	return "http://" + net.JoinHostPort(s.PodHost(), podPort)
}

// ExposeToPods forwards connections of pods and instances to an address of this machine. In the
// network of the instances, the host is PodHost, or the address of the EKS Pod Identity Agent.
func (s *Sandbox) ExposeToPods(inside, address string) error { return s.vpc.Expose(inside, address) }

// SharedDir is a directory of this machine that real instances mount at instances.SharedDir. It
// survives them. Simulated instances have none.
func (s *Sandbox) SharedDir() string {
	if s.fleet == nil {
		return ""
	}
	return s.fleet.SharedDir()
}

// stopInstances cuts the power of all instances and removes their network.
func (s *Sandbox) stopInstances(ctx context.Context) error {
	if s.fleet == nil {
		return nil
	}
	return s.fleet.Close(ctx)
}

// realAgent configures the agent of a real instance: it runs there and finds the instance's
// metadata at the usual address.
func (a *agents) realAgent(instance, kubeconfig string, o process.Options) (process.Options, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return o, fmt.Errorf("reading the agent's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = a.s.cluster.InsideURL()
	}
	name := "agent.kubeconfig"
	if err := clientcmd.WriteToFile(*config, filepath.Join(a.s.fleet.Dir(instance), name)); err != nil {
		return o, fmt.Errorf("writing the agent's kubeconfig: %w", err)
	}
	program, err := filepath.EvalSymlinks(a.program)
	if err != nil {
		return o, fmt.Errorf("finding lifeboatd: %w", err)
	}
	o.Path = instances.AgentDir + "/" + filepath.Base(program)
	o.Env = append(bareEnv(), "NO_PROXY=*")
	o.Args = append(o.Args, "--kubeconfig="+instances.ConfigDir+"/"+name)
	return a.s.fleet.Inside(instance, o), nil
}

// sweepInstances removes what the real instances of a killed sandbox left.
func sweepInstances(ctx context.Context, o Options) error {
	return instances.Sweep(ctx, cgroupName(o))
}
