package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const interruptHelp = `Make an interruption happen on purpose, to see that pods survive it.

--via fis (the default for --kind spot) asks AWS Fault Injection Service to
interrupt the instances for real: EC2 sends a rebalance recommendation at once
and the interruption notice after --delay, and takes the instances away two
minutes after the notice. It works for running spot instances only and needs a
role that trusts fis.amazonaws.com and may send spot interruptions (the managed
policy AWSFaultInjectionSimulatorEC2Access). With --kind rebalance it is the
recommendation that is waited for; FIS sends none alone, so that the notice
follows as late as it can, unless Ctrl-C calls it off.

--via queue writes the notice into Lifeboat's queue as AWS would, marked as a
drill. It works for every kind and tests Lifeboat alone: nodes are drained, but
nothing is reclaimed, and neither the EventBridge rules nor AWS have a part in
it.

Kinds: spot, rebalance, scheduled (--code, --in, --close), health (--code,
--close), state (--state), capacity-reservation (--in), capacity-block (--in),
autoscaling (--group), lifecycle-failure (--group); or as policies name them.`

type interruptFlags struct {
	kind, via, queueURL, role string
	instances                 []string
	delay                     time.Duration
	wait, watch, yes          bool
	interactive, dryRun       bool
	action, state, code, in   string
	closes                    bool
	group, until              string
	lead                      time.Duration // what in says, or the kind's own
	of                        drill.Kind    // what kind says
	viaGiven, delayGiven      bool
}

const (
	viaFIS   = "fis"
	viaQueue = "queue"

	kindSpot      = "spot"
	kindRebalance = "rebalance"

	untilDrained = "drained"
	untilOver    = "over"
)

func newInterrupt(s *session) *cobra.Command {
	var f interruptFlags
	cmd := &cobra.Command{
		Use:   "interrupt NODE|INSTANCE...",
		Short: "Make an interruption happen on purpose",
		Long:  interruptHelp,
		Example: `  # Reclaim a node of the sandbox and see its pods leave
  lifeboat interrupt --sandbox ip-10-0-1-5.ec2.internal --watch

  # Choose from the spot nodes, and reclaim them for real with the notice in 30 s
  lifeboat interrupt --interactive --delay 30s --fis-role-arn arn:aws:iam::123456789012:role/fis

  # Only tell Lifeboat that a node is going away
  lifeboat interrupt ip-10-0-1-5.ec2.internal --via queue --wait

  # AWS plans to reboot it in 12 days; and then it does not
  lifeboat interrupt ip-10-0-1-5.ec2.internal --kind scheduled --code AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED --in 12d
  lifeboat interrupt ip-10-0-1-5.ec2.internal --kind scheduled --close`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args = append(args, f.instances...)
			f.viaGiven, f.delayGiven = cmd.Flags().Changed("via"), cmd.Flags().Changed("delay")
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return s.interrupt(cmd.Context(), f, args)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *interruptFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", kindSpot, "what is sent; see above")
	flags.StringVar(&f.via, "via", viaFIS, "fis for a real interruption; queue to test Lifeboat alone (the default for all kinds but spot)")
	flags.StringSliceVar(&f.instances, "instance-id", nil, "an instance; the same as to name it as an argument")
	flags.BoolVar(&f.interactive, "interactive", false, "choose from a list of the spot nodes")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be sent, and send nothing")
	flags.DurationVar(&f.delay, "delay", 0, "time before the notice, up to 13m")
	flags.StringVar(&f.action, "action", "", "what EC2 does to the instance: terminate (the default), stop or hibernate")
	flags.StringVar(&f.state, "state", "", "the state that it enters: stopping (the default), stopped, shutting-down or terminated")
	flags.StringVar(&f.code, "code", "", "AWS Health's event type code (default for --kind scheduled "+drill.DefaultScheduledCode+")")
	flags.StringVar(&f.in, "in", "", "how far away the change is, such as 12d, 2h or 2m (default for --kind scheduled 14d)")
	flags.BoolVar(&f.closes, "close", false, "say that what an earlier drill announced is called off")
	flags.StringVar(&f.group, "group", "", "the Auto Scaling group (default one that nobody has)")
	flags.StringVar(&f.queueURL, "queue-url", "", "Lifeboat's queue (default: the one named lifeboat-CLUSTER)")
	flags.StringVar(&f.role, "fis-role-arn", "", "the role that FIS acts with (the sandbox needs none)")
	flags.BoolVar(&f.wait, "wait", false, "wait until it is done; exit 1 if a pod was lost")
	flags.BoolVar(&f.watch, "watch", false, "as --wait, and show what happens")
	flags.StringVar(&f.until, "until", "", "what --wait waits for: drained, no pod is left to move (the default via queue); or over, the node is gone or recovered (the default via fis)")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
}

// interrupted is what the command reports.
type interrupted struct {
	Kind        string         `json:"kind"`
	Via         string         `json:"via"`
	DryRun      bool           `json:"dryRun,omitempty"`
	Sandbox     bool           `json:"sandbox"`
	Place       drill.Place    `json:"place"`
	Targets     []drill.Target `json:"targets"`
	Experiments []string       `json:"experiments,omitempty"`
	// Drill is the id that marks the messages.
	Drill      string    `json:"drill,omitempty"`
	Messages   []string  `json:"messages,omitempty"`
	NoticeTime time.Time `json:"noticeTime,omitzero"`
	// Templates and Bodies are what would be sent, with --dry-run.
	Templates []drill.Template `json:"templates,omitempty"`
	Bodies    []rawMessage     `json:"bodies,omitempty"`
	// Outcomes are there with --wait and --watch.
	Outcomes []outcome `json:"outcomes,omitempty"`
}

func (s *session) interrupt(ctx context.Context, f interruptFlags, args []string) error {
	keyboard := bufio.NewReader(s.env.In)
	cloud, targets, err := s.aim(ctx, f, args, keyboard)
	if err != nil {
		return err
	}
	it, err := s.prepare(ctx, f, cloud, targets)
	if err != nil {
		return err
	}
	if f.dryRun {
		return s.show(it)
	}
	if err := s.confirm(ctx, it, keyboard); err != nil {
		return err
	}
	var watcher *drillWatch
	if f.wait || f.watch {
		if watcher, err = s.beforeDrill(ctx, it); err != nil {
			return err
		}
	}
	progress := terminal.NewProgress(s.err)
	defer progress.Stop()
	done := it.report()
	if err := it.send(ctx, s, progress, &done); err != nil {
		return err
	}
	done.NoticeTime = s.now()
	s.tell(progress, it, done)
	if watcher != nil {
		done.Outcomes, err = watcher.run(ctx, progress, f.watch && !s.isJSON())
		it.callOff(ctx, s, progress, done.Experiments)
	}
	progress.Stop()
	if s.isJSON() {
		if jsonErr := s.writeJSON(done); jsonErr != nil {
			return jsonErr
		}
	}
	return err
}

// confirm asks before anything real is touched.
func (s *session) confirm(ctx context.Context, it *drilling, keyboard *bufio.Reader) error {
	if it.cloud.emulated || it.flags.yes {
		return nil
	}
	return s.goOn(ctx, keyboard, it.consequence(), "this is not a sandbox, and ")
}

// consequence says what the drill is going to do.
func (it *drilling) consequence() string {
	names := make([]string, 0, len(it.targets))
	for _, t := range it.targets {
		names = append(names, t.String())
	}
	all := strings.Join(names, ", ")
	f := it.flags
	switch {
	case f.via == viaFIS:
		return fmt.Sprintf("EC2 account %s in %s will take these spot instances away, about %s from now: %s.",
			it.cloud.place.Account, it.cloud.place.Region, terminal.Duration(f.delay+drill.Lead), all)
	case f.closes:
		return fmt.Sprintf("Lifeboat will be told that what was planned for these nodes is called off: %s.", all)
	case f.state == notice.StateStopped || f.state == notice.StateTerminated:
		return fmt.Sprintf("Lifeboat will be told that these instances are gone, and deletes their pods with no time to stop, though they run: %s.", all)
	case f.of.Name == notice.KindSpotInterruption:
		return fmt.Sprintf("Lifeboat will be told that these nodes are going away, and moves their pods off them (nothing is reclaimed): %s.", all)
	}
	return fmt.Sprintf("Lifeboat will be told of a %s of these nodes, and does what its policies say of it (nothing is reclaimed): %s.", f.of.Name, all)
}

// tell says what has been done.
func (s *session) tell(progress *terminal.Progress, it *drilling, done interrupted) {
	if s.isJSON() {
		return
	}
	for _, t := range done.Targets {
		text := fmt.Sprintf("wrote a notice of kind %s about %s into the queue; this tests Lifeboat only, nothing is reclaimed", done.Kind, t)
		switch {
		case it.flags.closes:
			text = fmt.Sprintf("wrote into the queue that the %s of %s is called off", done.Kind, t)
		case it.isRecommendation():
			text = fmt.Sprintf("the rebalance recommendation of %s is out, by FIS; its notice follows in about %s", t, terminal.Duration(it.flags.delay))
		case done.Via == viaFIS:
			text = fmt.Sprintf("the notice of %s is out, by FIS; EC2 takes it away in about %s", t, terminal.Duration(drill.Lead))
		}
		progress.Print(s.out, text+"\n")
	}
	if it.isRecommendation() && !it.flags.wait && !it.flags.watch {
		for _, id := range done.Experiments {
			progress.Print(s.out, fmt.Sprintf("to call it off: aws fis stop-experiment --id %s\n", id))
		}
	}
}
