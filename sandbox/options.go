package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/internal/sandboxstate"
)

const (
	// DefaultName is the sandbox that commands use if none is named.
	DefaultName = sandboxstate.DefaultName
	// FastBoot is a BootDelay for tests that are not about boot times.
	FastBoot = 2 * time.Second
)

// Options describe a sandbox. The zero value is the default sandbox.
type Options struct {
	// Name identifies the sandbox; several can run in parallel. Lower-case letters, digits and -,
	// at most 30.
	Name string
	// Dir holds all files of the sandbox. Up creates it and Down removes it. Default:
	// DefaultDir(Name).
	Dir string
	// Account and Region are those of the emulated AWS.
	Account, Region string
	// BootDelay is the time from the launch of an instance to its Node. Default: each instance takes
	// between 30 and 60 s, as OrdinaryBoot says; a real one takes its own time, and BootDelay more.
	BootDelay time.Duration
	// Unkind is [emulator.Options.Unkind]. Zero: messages are delivered in order and once, and all
	// answers show the current state.
	Unkind uint64
	// RealNodes makes instances real: package instances lists what this machine must have.
	RealNodes bool
	// Disks adds a CSI driver whose disks are directories, with csi-attacher; see MakeDisk. It needs
	// RealNodes.
	Disks bool
	// Lifeboatd is the path of the program; default: beside the running program, otherwise on
	// $PATH.
	Lifeboatd string
	// LifeboatdArgs are added to its command line.
	LifeboatdArgs []string
	// LimitRole runs lifeboatd with an IAM role that has only the policy of `lifeboat aws iam`.
	// Otherwise the emulator allows everything.
	LimitRole bool
	// SessionLife gives lifeboatd temporary credentials of its role that live that long, from an
	// endpoint; it needs LimitRole. Zero: its credentials outlive the sandbox.
	SessionLife time.Duration
	// Agents runs an agent for every node, with AgentArgs added to its command line.
	Agents    bool
	AgentArgs []string
	// APIServerArgs are extra flags of the API server, as --name=value.
	APIServerArgs []string
	// Karpenter runs unmodified Karpenter. The user applies an EC2NodeClass and a NodePool;
	// karpenter.Defaults has examples.
	Karpenter bool
	// OlderKarpenter selects an earlier minor version.
	OlderKarpenter bool
	// KarpenterQueue names an interruption queue for Karpenter, which Up creates; default: none,
	// and Karpenter receives no notices. KarpenterOwnQueue lets EventBridge fill it, as Karpenter's
	// own installation does. Otherwise only Lifeboat's forwarded messages reach it.
	KarpenterQueue    string
	KarpenterOwnQueue bool
	// KarpenterPolicy is the IAM policy of Karpenter; default: it may do everything.
	KarpenterPolicy string
	// Chaos prepares the sandbox for package chaos: the parts connect through links, and a killed
	// control plane is started again. Not with RealNodes.
	Chaos bool
	// Replicas is how many replicas of lifeboatd run, with leader election from two on; default 1.
	Replicas int
	// KarpenterGuard turns on the chart's guard of NodeClaims (karpenter.guard.enabled).
	KarpenterGuard bool
	// OutOfServiceTaint turns on the chart's option of that name.
	OutOfServiceTaint bool
	// WaitForDeregistration turns on the chart's option of that name. With LimitRole, the role has its
	// permission.
	WaitForDeregistration bool
	// NoLifeboat does not start lifeboatd until StartLifeboat.
	NoLifeboat bool
	// NoChart leaves the cluster without Lifeboat's chart, for tests that install it with Helm. It
	// implies NoLifeboat.
	NoChart bool
	// Progress receives every step of Up and Down. It may be nil.
	Progress func(Step)
}

func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := sandboxstate.CheckName(o.Name); err != nil {
		return o, err
	}
	if err := errors.Join(o.checkKarpenter(), o.checkChaos(), o.checkDisks()); err != nil {
		return o, err
	}
	o.Replicas = max(o.Replicas, 1)
	o.NoLifeboat = o.NoLifeboat || o.NoChart
	if o.Dir == "" {
		dir, err := DefaultDir(o.Name)
		if err != nil {
			return o, err
		}
		o.Dir = dir
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("finding the sandbox's directory: %w", err)
	}
	o.Dir = dir
	if o.Account == "" {
		o.Account = emulator.DefaultAccount
	}
	if o.Region == "" {
		o.Region = emulator.DefaultRegion
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	return o, nil
}

func (o Options) checkKarpenter() error {
	if !o.Karpenter && (o.OlderKarpenter || o.KarpenterQueue != "" || o.KarpenterGuard) || o.KarpenterOwnQueue && o.KarpenterQueue == "" {
		return errors.New("options of Karpenter: KarpenterOwnQueue needs KarpenterQueue; KarpenterQueue, KarpenterGuard and OlderKarpenter need Karpenter")
	}
	return nil
}

func (o Options) checkChaos() error {
	if o.Chaos && o.RealNodes {
		return errors.New("options Chaos and RealNodes: real instances have networks of their own; use one of the two")
	}
	return nil
}

func (o Options) checkDisks() error {
	if o.Disks && !o.RealNodes {
		return errors.New("option Disks: simulated instances mount nothing; set RealNodes too")
	}
	return nil
}

// findLifeboatd searches where `make build` and a package install it.
func findLifeboatd(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "lifeboatd")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath("lifeboatd")
	if err != nil {
		return "", errors.New("finding lifeboatd: it is neither beside this program nor on $PATH: run `make build`")
	}
	return path, nil
}
