package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

const (
	karpenterPart = "karpenter"
	// karpenterRole is the IAM role of Karpenter, if it has a policy.
	karpenterRole = "karpenter-controller"
	// karpenterTimeout is how long Karpenter may take to become ready.
	karpenterTimeout = time.Minute
)

// makeKarpenterQueue creates Karpenter's own queue, and the rules that fill it, as the options
// require.
func (s *Sandbox) makeKarpenterQueue(ctx context.Context) error {
	if s.opts.KarpenterQueue == "" {
		return nil
	}
	url, err := karpenter.MakeQueue(ctx, s.AWSConfig(), s.opts.KarpenterQueue)
	if err != nil {
		return err
	}
	s.updateState(func(st *State) { st.KarpenterQueueURL = url })
	if !s.opts.KarpenterOwnQueue {
		return nil
	}
	return karpenter.MakeRules(ctx, s.AWSConfig(), url)
}

// firstKarpenter is the step of Up.
func (s *Sandbox) firstKarpenter(ctx context.Context, detail func(string)) error {
	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	crds, err := karpenter.CRDs(ctx, s.programs.Karpenter)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, c, crds); err != nil {
		return err
	}
	if err := waitEstablished(ctx, c, crds); err != nil {
		return err
	}
	roles, err := karpenter.RBAC(s.programs.KarpenterVersion)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, c, roles); err != nil {
		return err
	}
	if err := s.cloud.server.States.IAM.PutRole(karpenter.NodeRole); err != nil {
		return fmt.Errorf("making the role of its nodes: %w", err)
	}
	if err := s.StartKarpenter(ctx); err != nil {
		return err
	}
	what := "launches instances for pods"
	if s.opts.KarpenterOwnQueue {
		what += ", receives interruptions from its queue " + s.opts.KarpenterQueue
	}
	detail(what)
	return nil
}

// StartKarpenter starts Karpenter and returns when it is ready. From then on it is restarted
// whenever it ends. It does nothing if it runs. Options.Karpenter must be set.
func (s *Sandbox) StartKarpenter(ctx context.Context) error {
	if s.karpenter == nil {
		k, err := s.newKarpenter()
		if err != nil {
			return err
		}
		s.karpenter = k
	}
	if err := s.karpenter.start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, karpenterTimeout)
	defer cancel()
	return waitFor(ctx, "Karpenter to become ready", func(ctx context.Context) (bool, error) {
		return ready(ctx, s.karpenterAddr), s.karpenter.lastError()
	})
}

// StopKarpenter stops Karpenter with SIGTERM, until StartKarpenter.
func (s *Sandbox) StopKarpenter() error {
	if s.karpenter == nil {
		return nil
	}
	return s.karpenter.stop()
}

// SetKarpenterQueue restarts Karpenter with another interruption queue; empty: it reads none. A Deployment
// that changes restarts it likewise.
func (s *Sandbox) SetKarpenterQueue(ctx context.Context, queue string) error {
	if err := s.StopKarpenter(); err != nil {
		return err
	}
	s.karpenter, s.opts.KarpenterQueue = nil, queue
	return s.StartKarpenter(ctx)
}

// KillKarpenter kills Karpenter with SIGKILL. It is restarted, as a Deployment would do.
func (s *Sandbox) KillKarpenter() error {
	if s.karpenter == nil {
		return errors.New("killing Karpenter: it does not run")
	}
	if err := s.karpenter.crash(); err != nil {
		return fmt.Errorf("killing Karpenter: %w", err)
	}
	return nil
}

// LimitKarpenter replaces Karpenter's IAM policy. Options.KarpenterPolicy must be set.
func (s *Sandbox) LimitKarpenter(policy string) error {
	return s.putPolicy(karpenterRole, policy)
}

// KarpenterLog is the path of Karpenter's log.
func (s *Sandbox) KarpenterLog() string { return s.path("karpenter.log") }

func (s *Sandbox) newKarpenter() (*supervisor, error) {
	if s.programs.Karpenter == "" {
		return nil, errors.New("starting Karpenter: the sandbox was made without it: set Options.Karpenter")
	}
	metrics, err := karpenter.FreePort()
	if err != nil {
		return nil, err
	}
	health, err := karpenter.FreePort()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.cluster.UserKubeconfig(karpenter.User)
	if err != nil {
		return nil, err
	}
	if kubeconfig, err = s.linkedKubeconfig(LinkKarpenterAPI, kubeconfig); err != nil {
		return nil, err
	}
	st := s.State()
	if st.AWSEndpoint, err = s.linked(LinkKarpenterAWS, st.AWSEndpoint); err != nil {
		return nil, err
	}
	if s.opts.KarpenterPolicy != "" {
		if st.AccessKeyID, st.SecretAccessKey, err = s.assumeRole(karpenterRole, s.opts.KarpenterPolicy); err != nil {
			return nil, err
		}
	}
	options := karpenter.Options{
		Binary: s.programs.Karpenter, Kubeconfig: kubeconfig, LeaderElection: s.opts.KarpenterGuard, LogFile: s.KarpenterLog(), Dir: s.opts.Dir,
		Cluster: clusterName, Endpoint: s.cluster.URL(),
		AWSEndpoint: st.AWSEndpoint, Region: st.Region, AccessKeyID: st.AccessKeyID, SecretAccessKey: st.SecretAccessKey,
		Queue: s.opts.KarpenterQueue, MetricsPort: metrics, HealthPort: health,
	}
	s.karpenterAddr = "127.0.0.1:" + health
	part := Part{
		Name: karpenterPart, Address: "http://127.0.0.1:" + metrics + "/metrics",
		Version: s.programs.KarpenterVersion, Log: s.KarpenterLog(),
	}
	return &supervisor{
		name: karpenterPart, log: s.log, started: func(pid int) { s.partStarted(part, pid) },
		launch: func(ctx context.Context) (*process.Process, error) { return karpenter.Start(ctx, options) },
	}, nil
}
