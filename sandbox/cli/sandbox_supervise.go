package cli

import (
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// superviseFlags are the options of a sandbox as flags. The user gives them to `up`, and `up` passes
// them to `supervise`.
type superviseFlags struct {
	account, region, lifeboatd string
	bootDelay                  time.Duration
	replicas                   int
	noLifeboat, agents, real   bool
	karpenter                  bool
	// karpenterQueue is the name of Karpenter's own queue; empty: none.
	karpenterQueue string
	// unkind is the seed of AWS's worst answers; zero: the best ones.
	unkind uint64
}

func (f *superviseFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.account, "account", "123456789012", "the account of the emulated AWS")
	flags.StringVar(&f.region, "region", "us-east-1", "the region of the emulated AWS")
	flags.StringVar(&f.lifeboatd, "lifeboatd", "", "path of lifeboatd (default: beside this program, then $PATH)")
	flags.DurationVar(&f.bootDelay, "boot-delay", 0, "how long an instance takes from its launch to its node (default: 30 to 60 s, as on an ordinary cluster)")
	flags.IntVar(&f.replicas, "replicas", 1, "replicas of lifeboatd, with leader election from two on")
	flags.BoolVar(&f.agents, "agents", false, "run an agent on every node, which reads its instance's metadata")
	flags.BoolVar(&f.karpenter, "karpenter", false, "run Karpenter, which launches instances for pods; see --help")
	flags.StringVar(&f.karpenterQueue, "karpenter-queue", "", "with --karpenter: the name of its own queue, which turns its settings.interruptionQueue on (default: off)")
	flags.Uint64Var(&f.unkind, "unkind", 0, "answer as badly as AWS documents, with this number as seed of the random choices; see --help (default: off)")
	flags.BoolVar(&f.noLifeboat, "no-lifeboat", false, "do not start lifeboatd, so that you can run your own")
}

// firstBoot are the tags of the first instances. They are nodes soon, unless the user has set a time.
func (f *superviseFlags) firstBoot() []types.Tag {
	if f.bootDelay > 0 || f.real {
		return nil
	}
	return []types.Tag{{Key: aws.String(machines.TagBootTime), Value: aws.String(sandbox.FastBoot.String())}}
}

func (f *superviseFlags) options(s *session) sandbox.Options {
	return sandbox.Options{
		RealNodes: f.real, Chaos: !f.real, Replicas: f.replicas, Karpenter: f.karpenter,
		Name: s.selected(), Account: f.account, Region: f.region,
		BootDelay: f.bootDelay, Lifeboatd: f.lifeboatd, NoLifeboat: f.noLifeboat, Agents: f.agents,
		KarpenterQueue: f.karpenterQueue, KarpenterOwnQueue: f.karpenterQueue != "",
		Unkind: f.unkind,
	}
}

// command is the command line that supervises a sandbox with these options.
func (f *superviseFlags) command(s *session) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{
		self, "supervise", "--sandbox=" + s.selected(),
		"--account=" + f.account, "--region=" + f.region, "--lifeboatd=" + f.lifeboatd,
		"--boot-delay=" + f.bootDelay.String(), "--no-lifeboat=" + strconv.FormatBool(f.noLifeboat),
		"--replicas=" + strconv.Itoa(f.replicas), "--agents=" + strconv.FormatBool(f.agents), "--real=" + strconv.FormatBool(f.real),
		"--karpenter=" + strconv.FormatBool(f.karpenter), "--karpenter-queue=" + f.karpenterQueue,
		"--unkind=" + strconv.FormatUint(f.unkind, 10),
	}, nil
}

func newSandboxSupervise(s *session) *cobra.Command {
	var f superviseFlags
	cmd := &cobra.Command{
		Use:     "supervise",
		Short:   "Run as the supervisor of a sandbox",
		Long:    "Run as the supervisor of a sandbox, until SIGTERM. `sandbox up` starts it.",
		Example: "  lifeboat sandbox supervise --sandbox default",
		Hidden:  true,
		Args:    command.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.sandboxes.supervise(cmd.Context(), f.options(s))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.real, "real", false, "run real instances")
	return cmd
}
