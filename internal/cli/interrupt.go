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

const interruptHelp = `Cause an interruption on purpose, to check that pods survive it.

--via fis (the default for --kind spot) makes AWS Fault Injection Service
interrupt the instances for real. EC2 sends a rebalance recommendation at once,
the interruption notice after --delay, and reclaims the instances two minutes
after the notice. This works for running spot instances only. It needs a role
that trusts fis.amazonaws.com and may send spot interruptions: lifeboat aws iam
--role fis prints and creates one. With --kind rebalance, --wait waits for the
recommendation. FIS always sends the notice after it, as late as it can; Ctrl-C
stops the experiment before that.

--via queue writes the notice into Lifeboat's queue in the format of AWS, marked
as a drill. This works for every kind and tests Lifeboat alone: nodes are drained,
but nothing is reclaimed, and EventBridge and EC2 are not involved. The command
permits the drill in the Lease lifeboat-drills, and Lifeboat ignores all others.
With --end-instance Lifeboat also does what cannot be undone: it deletes the
NodeClaim of Karpenter's nodes, and terminates the instance if the policy says
Terminate.

Kinds: spot, rebalance, scheduled (--event-type-code, --in, --cancel),
health (--event-type-code, --cancel), state (--state), capacity-reservation (--in),
capacity-block (--in), autoscaling (--group), lifecycle-failure (--group); or the
names in policies.`

type interruptFlags struct {
	kind, via, queueURL, role string
	delay                     time.Duration
	wait, watch, yes          bool
	interactive, dryRun       bool
	action, state, code, in   string
	cancel, endInstance       bool
	group, until              string
	lead                      time.Duration // the value of in, or the kind's default
	of                        drill.Kind    // the parsed kind
	viaGiven, delayGiven      bool
}

const (
	viaFIS   = "fis"
	viaQueue = "queue"

	kindSpot      = "spot"
	kindRebalance = "rebalance"

	untilDrained   = "drained"
	untilCompleted = "completed"
)

func newInterrupt(s *session) *cobra.Command {
	var f interruptFlags
	cmd := &cobra.Command{
		Use:   "interrupt NODE|INSTANCE...",
		Short: "Interrupt nodes on purpose, for real or as a drill",
		Long:  interruptHelp,
		Example: `  # Reclaim a node of the sandbox and follow its drain
  eval "$(lifeboat sandbox env)"
  lifeboat interrupt ip-10-0-1-5.ec2.internal --watch

  # Choose from the spot nodes, and reclaim them for real, with the notice in 30 s
  lifeboat interrupt --interactive --delay 30s --fis-role-arn arn:aws:iam::123456789012:role/fis

  # Send a notice to Lifeboat only
  lifeboat interrupt ip-10-0-1-5.ec2.internal --via queue --wait

  # Announce a reboot in 12 days, and then cancel it
  lifeboat interrupt ip-10-0-1-5.ec2.internal --kind scheduled --event-type-code AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED --in 12d
  lifeboat interrupt ip-10-0-1-5.ec2.internal --kind scheduled --cancel`,
		RunE: func(cmd *cobra.Command, args []string) error {
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
	flags.StringVar(&f.kind, "kind", kindSpot, "kind of the notice; see above")
	flags.StringVar(&f.via, "via", viaFIS, "fis interrupts for real; queue tests Lifeboat alone (the default for all kinds except spot)")
	flags.BoolVar(&f.interactive, "interactive", false, "choose from a list of the spot nodes")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the request or the message, and send nothing")
	flags.DurationVar(&f.delay, "delay", 0, "time before the notice, up to 13m")
	flags.StringVar(&f.action, "action", "", "what EC2 does to the instance: terminate (the default), stop or hibernate")
	flags.StringVar(&f.state, "state", "", "the new state of the instance: stopping (the default), stopped, shutting-down or terminated")
	flags.StringVar(&f.code, "event-type-code", "", "AWS Health's event type code (default for --kind scheduled "+drill.DefaultScheduledCode+")")
	flags.StringVar(&f.in, "in", "", "time until the change, such as 12d, 2h or 2m (default for --kind scheduled 14d)")
	flags.BoolVar(&f.cancel, "cancel", false, "cancel the change that an earlier drill announced")
	flags.BoolVar(&f.endInstance, "end-instance", false, "let Lifeboat end the instances, as it would for a notice of AWS (via queue)")
	flags.StringVar(&f.group, "group", "", "name of the Auto Scaling group (default: a name that does not exist)")
	flags.StringVar(&f.queueURL, "queue-url", "", "URL of Lifeboat's queue (default: the queue named lifeboat-CLUSTER)")
	flags.StringVar(&f.role, "fis-role-arn", "", "ARN of the role that FIS assumes (the sandbox needs none)")
	flags.BoolVar(&f.wait, "wait", false, "wait until the interruption is handled; exit 1 if a pod was lost")
	flags.BoolVar(&f.watch, "watch", false, "like --wait, and print the timeline")
	flags.StringVar(&f.until, "until", "", "goal of --wait: drained (no pod is left to move, the default via queue), or completed (the node is gone or has recovered, the default via fis)")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
}

// interrupted is the output of the command.
type interrupted struct {
	Kind        string         `json:"kind"`
	Via         string         `json:"via"`
	DryRun      bool           `json:"dryRun,omitempty"`
	Sandbox     bool           `json:"sandbox"`
	Place       drill.Place    `json:"place"`
	Targets     []drill.Target `json:"targets"`
	Experiments []string       `json:"experiments,omitempty"`
	// Drill is the id that marks the messages of this drill.
	Drill      string    `json:"drill,omitempty"`
	Messages   []string  `json:"messages,omitempty"`
	NoticeTime time.Time `json:"noticeTime,omitzero"`
	// Templates and Bodies are what --dry-run prints.
	Templates []drill.Template `json:"templates,omitempty"`
	Bodies    []rawMessage     `json:"bodies,omitempty"`
	// Outcomes is set with --wait and --watch.
	Outcomes []outcome `json:"outcomes,omitempty"`
}

func (s *session) interrupt(ctx context.Context, f interruptFlags, args []string) error {
	keyboard := bufio.NewReader(s.env.In)
	cloud, targets, err := s.selectTargets(ctx, f, args, keyboard)
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
	s.printSent(progress, it, done)
	if watcher != nil {
		done.Outcomes, err = watcher.run(ctx, progress, f.watch && !s.isJSON())
		it.stopPending(ctx, s, progress, done.Experiments)
	}
	progress.Stop()
	if s.isJSON() {
		if jsonErr := s.writeJSON(done); jsonErr != nil {
			return jsonErr
		}
	}
	return err
}

// confirm asks for confirmation before a command that affects a real cluster.
func (s *session) confirm(ctx context.Context, it *drilling, keyboard *bufio.Reader) error {
	if it.cloud.emulated || it.flags.yes {
		return nil
	}
	return s.requireConfirmation(ctx, keyboard, it.consequence(), "this is not a sandbox, and ")
}

// consequence describes the effect of the drill, for the confirmation.
func (it *drilling) consequence() string {
	names := make([]string, 0, len(it.targets))
	for _, t := range it.targets {
		names = append(names, t.String())
	}
	all := strings.Join(names, ", ")
	f := it.flags
	fate := "nothing is reclaimed"
	if f.endInstance {
		fate = "it ENDS the instances that Karpenter launched, or that its policies terminate"
	}
	switch {
	case f.via == viaFIS:
		return fmt.Sprintf("AWS account %s will reclaim these spot instances in %s, in about %s: %s.",
			it.cloud.place.Account, it.cloud.place.Region, terminal.Duration(f.delay+drill.Lead), all)
	case f.cancel:
		return fmt.Sprintf("Lifeboat gets a message that the planned change of these nodes is cancelled: %s.", all)
	case f.state == notice.StateStopped || f.state == notice.StateTerminated:
		return fmt.Sprintf("Lifeboat gets a message that these instances are gone. It deletes their pods without a grace period, although they still run: %s.", all)
	case f.of.Name == notice.KindSpotInterruption:
		return fmt.Sprintf("Lifeboat gets a spot interruption notice for these nodes and drains them (%s): %s.", fate, all)
	}
	return fmt.Sprintf("Lifeboat gets a notice of kind %s for these nodes and follows its policies (%s): %s.", f.of.Name, fate, all)
}

// printSent prints what was sent.
func (s *session) printSent(progress *terminal.Progress, it *drilling, done interrupted) {
	if s.isJSON() {
		return
	}
	fate := "nothing is reclaimed"
	if it.flags.endInstance {
		fate = "and Lifeboat ends the instance if Karpenter launched it or the policy says Terminate"
	}
	for _, t := range done.Targets {
		text := fmt.Sprintf("wrote a notice of kind %s about %s into the queue; this tests Lifeboat only, %s", done.Kind, t, fate)
		switch {
		case it.flags.cancel:
			text = fmt.Sprintf("wrote a message into the queue that cancels the %s of %s", done.Kind, t)
		case it.isRecommendation():
			text = fmt.Sprintf("FIS sent the rebalance recommendation for %s; the interruption notice follows in about %s", t, terminal.Duration(it.flags.delay))
		case done.Via == viaFIS:
			text = fmt.Sprintf("FIS sent the interruption notice for %s; EC2 reclaims the instance in about %s", t, terminal.Duration(drill.Lead))
		}
		progress.Print(s.out, text+"\n")
	}
	if it.isRecommendation() && !it.flags.wait && !it.flags.watch {
		for _, id := range done.Experiments {
			progress.Print(s.out, fmt.Sprintf("to stop the experiment: aws fis stop-experiment --id %s\n", id))
		}
	}
}
