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
	// DefaultName is the sandbox that commands mean unless they name one.
	DefaultName      = sandboxstate.DefaultName
	defaultBootDelay = 2 * time.Second
)

// Options say what sandbox to make. The zero value makes the default one.
type Options struct {
	// Name tells sandboxes apart; several live side by side. Lower-case letters,
	// digits and -, at most 30.
	Name string
	// Dir holds everything that the sandbox writes. It is made, and removed when
	// the sandbox goes. Default: DefaultDir(Name).
	Dir string
	// Account and Region are those of the emulated AWS.
	Account, Region string
	// BootDelay is the time from the launch of an instance to its Node; default 2 s.
	// One that is real needs a moment more.
	BootDelay time.Duration
	// RealNodes makes instances that are real: see package instances, which says what
	// this machine must have.
	RealNodes bool
	// Lifeboatd is the path of the program; default: beside the running one, else
	// on $PATH.
	Lifeboatd string
	// LifeboatdArgs are added to its command line.
	LifeboatdArgs []string
	// Agents runs an agent for every node, with AgentArgs added to its command line.
	Agents    bool
	AgentArgs []string
	// APIServerArgs are more flags of the API server, as --name=value.
	APIServerArgs []string
	// Karpenter runs Karpenter, unmodified. Its EC2NodeClass and NodePool are the user's
	// to apply; karpenter.Defaults has some.
	Karpenter bool
	// OlderKarpenter makes it an earlier minor version.
	OlderKarpenter bool
	// KarpenterQueue is the name of an interruption queue of Karpenter's own, which is
	// made; default: none, and Karpenter hears of no interruption. KarpenterHears has
	// EventBridge fill it, as Karpenter's own installation does; else nothing comes into
	// it but what Lifeboat forwards.
	KarpenterQueue string
	KarpenterHears bool
	// NoLifeboat leaves lifeboatd out, until StartLifeboat.
	NoLifeboat bool
	// Progress hears of every step of coming up and going down. It may be nil.
	Progress func(Step)
}

func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := sandboxstate.CheckName(o.Name); err != nil {
		return o, err
	}
	if err := o.checkKarpenter(); err != nil {
		return o, err
	}
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
	if o.BootDelay == 0 && !o.RealNodes {
		o.BootDelay = defaultBootDelay
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	return o, nil
}

func (o Options) checkKarpenter() error {
	if !o.Karpenter && (o.OlderKarpenter || o.KarpenterQueue != "") || o.KarpenterHears && o.KarpenterQueue == "" {
		return errors.New("options of Karpenter: KarpenterHears needs KarpenterQueue, and that, as OlderKarpenter, needs Karpenter")
	}
	return nil
}

// findLifeboatd looks where `make build` and a package would have put it.
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
