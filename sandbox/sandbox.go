package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/link"
)

const (
	accessKeyID     = "AKIASANDBOXEXAMPLE00"
	secretAccessKey = "sandbox"
	clusterName     = "sandbox"

	// nodeGrace is the time for which a silent node counts as Ready. Kubernetes' own ratio would be
	// ten times the lease duration, which is too long for a scenario.
	nodeGrace = 12 * time.Second
)

// Sandbox is a sandbox in this process. After Up has returned, its methods are safe for concurrent
// use.
type Sandbox struct {
	opts Options

	lock     *sandboxstate.Lock
	programs assets.Paths
	cloud    *cloud
	cluster  *controlplane.ControlPlane

	clusterMu     sync.Mutex  // guards clusterDown, and a restart of cluster
	clusterDown   bool        // StopAPIServer ended it
	clusterKeeper *background // nil without Options.Chaos

	machines     *background
	agents       *agents
	bootAgents   *bootAgents      // nil if instances are real
	kwok         *supervisor      // nil if instances are real
	vpc          *instances.VPC   // nil if instances are simulated
	fleet        *instances.Fleet // likewise
	lifeboat     *supervisor      // nil until it was started once
	lifeboatAddr string           // of its /readyz
	standbys     []*supervisor    // other replicas of lifeboatd
	sessions     *sessions        // nil: lifeboatd has keys

	karpenter     *supervisor // likewise
	karpenterAddr string

	disks []*supervisor // the CSI driver's controller and csi-attacher; none without Options.Disks

	controllerArgs []string    // as in the chart
	links          *link.Links // nil: parts connect directly

	mu    sync.Mutex // guards state
	state State

	log     *slog.Logger
	logFile *os.File
}

// New validates the options; Up starts the sandbox.
func New(o Options) (*Sandbox, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &Sandbox{opts: o, log: slog.New(slog.DiscardHandler)}, nil
}

// Up starts everything and returns when it is ready. If it fails, or ctx ends, it stops everything
// before it returns. The error wraps ErrRunning if a sandbox of that name runs.
func (s *Sandbox) Up(ctx context.Context) error {
	err := s.up(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // the interrupted step's own error is not the cause
	}
	return errors.Join(fmt.Errorf("bringing the sandbox %s up: %w", s.opts.Name, err), s.Down())
}

func (s *Sandbox) up(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context, func(string)) error
	}{
		{"programs", s.ensurePrograms},
		{"control plane", s.startControlPlane},
		{"AWS emulator", s.startCloud},
		{"wiring", s.wire},
		{chartPart, s.install}, // after the wiring: the queue's URL is one of its values
		{"machines", s.startMachines},
		{disksPart, s.startDisks},
		{karpenterPart, s.firstKarpenter},
		{"lifeboatd", s.firstLifeboat},
	} {
		if step.name == disksPart && !s.opts.Disks || step.name == karpenterPart && !s.opts.Karpenter || step.name == chartPart && s.opts.NoChart {
			continue
		}
		err := s.opts.run(step.name, func(detail func(string)) error { return step.do(ctx, detail) })
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := s.saveState(false); err != nil {
			return err
		}
	}
	return s.saveState(true)
}

// begin creates and locks the directory.
func (s *Sandbox) begin(ctx context.Context) error {
	l, err := sandboxstate.TakeLock(ctx, s.opts.Dir)
	if err != nil {
		return err
	}
	s.lock = l
	if err := sweepInstances(ctx, s.opts); err != nil {
		return err
	}
	if err := l.Clear(); err != nil {
		return err
	}
	s.logFile, err = os.OpenFile(s.path("sandbox.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the sandbox's log: %w", err)
	}
	s.log = slog.New(slog.NewTextHandler(s.logFile, nil))
	s.state = State{
		Name: s.opts.Name, Dir: s.opts.Dir, Account: s.opts.Account, Region: s.opts.Region,
		AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey,
		Supervisor: os.Getpid(), Started: time.Now(),
	}
	s.openLinks()
	return s.saveState(false)
}

// Down stops everything in order and removes the directory. It may be called at any time, and
// repeatedly.
func (s *Sandbox) Down() error {
	if s.lock == nil {
		return nil
	}
	err := s.opts.run("stopping", func(detail func(string)) error {
		var errs []error
		if s.lifeboat != nil {
			detail("lifeboatd")
			errs = append(errs, s.StopLifeboat())
		}
		if s.karpenter != nil {
			detail(karpenterPart)
			errs = append(errs, s.karpenter.stop())
		}
		for _, d := range s.disks {
			errs = append(errs, d.stop())
		}
		if s.machines != nil {
			errs = append(errs, s.machines.stop())
		}
		errs = append(errs, s.bootAgents.stop(), s.StopAgents(), s.stopInstances(context.Background()))
		if s.kwok != nil {
			errs = append(errs, s.kwok.stop())
		}
		if s.cloud != nil {
			detail("AWS emulator")
			errs = append(errs, s.cloud.stop())
		}
		if s.sessions != nil {
			errs = append(errs, s.sessions.serve.stop())
		}
		if s.clusterKeeper != nil {
			errs = append(errs, s.clusterKeeper.stop())
		}
		if s.cluster != nil {
			detail("control plane")
			s.cluster.Kill9() // its data goes with the directory
		}
		if s.vpc != nil {
			errs = append(errs, s.vpc.Close())
		}
		s.closeLinks()
		detail("")
		return errors.Join(errs...)
	})
	if s.logFile != nil {
		err = errors.Join(err, s.logFile.Close())
		s.logFile = nil
	}
	err = errors.Join(err, s.lock.Remove())
	s.lock = nil
	return err
}

// State returns what a user needs to use the sandbox.
func (s *Sandbox) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// EC2 is the emulated EC2.
func (s *Sandbox) EC2() *ec2.State { return s.cloud.server.States.EC2 }

// AWS is the emulator with all its services.
func (s *Sandbox) AWS() *emulator.Server { return s.cloud.server }

// RESTConfig is the administrator's client configuration.
func (s *Sandbox) RESTConfig() *rest.Config { return s.cluster.RESTConfig() }

// AWSConfig is for clients of the emulated AWS.
func (s *Sandbox) AWSConfig() aws.Config { return s.cloud.config() }

// Wiring is the initial AWS setup of the sandbox.
func (s *Sandbox) Wiring() awssetup.Wiring {
	w := awssetup.Desired(clusterName, s.opts.Account, s.opts.Region)
	w.Senders = []string{"arn:" + w.Partition + ":iam::" + w.Account + ":user/*"} // the sandbox's user plays drills
	return w
}

func (s *Sandbox) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// saveState writes the state file. Only Up calls it.
func (s *Sandbox) saveState(ready bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Ready = ready
	return s.state.Write()
}

// updateState changes the state under the lock.
func (s *Sandbox) updateState(f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}
