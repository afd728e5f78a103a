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

--via fis (the default) asks AWS Fault Injection Service to interrupt the
instances for real: EC2 sends a rebalance recommendation at once and the
interruption notice after --delay, and takes the instances away two minutes
after the notice. It works for running spot instances only and needs a role
that trusts fis.amazonaws.com and may send spot interruptions (the managed
policy AWSFaultInjectionSimulatorEC2Access).

--via queue writes the notice into Lifeboat's queue, as EventBridge would. It
tests Lifeboat alone: nodes are drained, but nothing is reclaimed, and neither
the EventBridge rules nor EC2 have a part in it.

A rebalance recommendation on its own (--kind rebalance) goes via the queue
only: FIS sends one together with a spot interruption, never alone.`

type interruptFlags struct {
	kind, via, queueURL, role string
	delay                     time.Duration
	wait, watch, yes          bool
}

const (
	viaFIS   = "fis"
	viaQueue = "queue"

	kindSpot      = "spot"
	kindRebalance = "rebalance"
)

func newInterrupt(s *session) *cobra.Command {
	var f interruptFlags
	cmd := &cobra.Command{
		Use:   "interrupt NODE|INSTANCE...",
		Short: "Make an interruption happen on purpose",
		Long:  interruptHelp,
		Example: `  # Reclaim a node of the sandbox and see its pods leave
  lifeboat interrupt --sandbox ip-10-0-1-5.ec2.internal --watch

  # Reclaim two spot instances for real, with the notice in 30 s
  lifeboat interrupt i-0a1b2c3d4e5f60718 i-0b2c3d4e5f6071829 --delay 30s --fis-role-arn arn:aws:iam::123456789012:role/fis

  # Only tell Lifeboat that a node is going away
  lifeboat interrupt ip-10-0-1-5.ec2.internal --via queue --wait`,
		Args: arguments(1, -1, "at least one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed("via")); err != nil {
				return err
			}
			return s.interrupt(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", kindSpot, "spot, or rebalance (via queue only)")
	flags.StringVar(&f.via, "via", viaFIS, "fis for a real interruption; queue to test Lifeboat alone")
	flags.DurationVar(&f.delay, "delay", 0, "time before the notice, up to 13m")
	flags.StringVar(&f.queueURL, "queue-url", "", "Lifeboat's queue (default: the one named lifeboat-CLUSTER)")
	flags.StringVar(&f.role, "fis-role-arn", "", "the role that FIS acts with (the sandbox needs none)")
	flags.BoolVar(&f.wait, "wait", false, "wait until no pod is left to move; exit 1 if one was lost")
	flags.BoolVar(&f.watch, "watch", false, "as --wait, and show what happens")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func (f *interruptFlags) check(viaGiven bool) error {
	switch f.kind {
	case kindSpot:
	case kindRebalance:
		if f.via == viaFIS && viaGiven {
			return usageErrorf("FIS cannot send a rebalance recommendation alone, only together with a spot interruption: use --via queue, or --kind spot")
		}
		f.via = viaQueue
	default:
		return usageErrorf("unknown kind %q: write --kind spot or --kind rebalance", f.kind)
	}
	if f.via != viaFIS && f.via != viaQueue {
		return usageErrorf("unknown way %q: write --via fis or --via queue", f.via)
	}
	if f.via == viaFIS && f.queueURL != "" {
		return usageErrorf("--queue-url is for --via queue")
	}
	if f.delay < 0 || f.delay > drill.MaxDelay {
		return usageErrorf("delay %s is out of range: FIS allows 0s to %s", f.delay, terminal.Duration(drill.MaxDelay))
	}
	return nil
}

// kindOf is the kind of notice that a drill causes.
func (f *interruptFlags) noticeKind() string {
	if f.kind == kindRebalance {
		return notice.KindRebalanceRecommendation
	}
	return notice.KindSpotInterruption
}

// interrupted is what the command reports.
type interrupted struct {
	Kind        string         `json:"kind"`
	Via         string         `json:"via"`
	Sandbox     bool           `json:"sandbox"`
	Place       drill.Place    `json:"place"`
	Targets     []drill.Target `json:"targets"`
	Experiments []string       `json:"experiments,omitempty"`
	Messages    []string       `json:"messages,omitempty"`
	NoticeTime  time.Time      `json:"noticeTime"`
	// Outcomes are there with --wait and --watch.
	Outcomes []outcome `json:"outcomes,omitempty"`
}

func (s *session) interrupt(ctx context.Context, f interruptFlags, args []string) error {
	targets, err := s.targets(ctx, args)
	if err != nil {
		return err
	}
	cloud, err := s.connectCloud(ctx, targets[0].Zone)
	if err != nil {
		return err
	}
	drillIt, err := s.prepare(ctx, &f, cloud, targets)
	if err != nil {
		return err
	}
	if err := s.confirm(f, cloud, targets); err != nil {
		return err
	}
	var watcher *drillWatch
	if f.wait || f.watch {
		if watcher, err = s.beforeDrill(ctx, targets, f.noticeKind()); err != nil {
			return err
		}
	}
	progress := terminal.NewProgress(s.err)
	defer progress.Stop()
	done := interrupted{Kind: f.noticeKind(), Via: f.via, Sandbox: cloud.emulated, Place: cloud.place, Targets: targets}
	if err := drillIt(ctx, progress, &done); err != nil {
		return err
	}
	done.NoticeTime = s.now()
	s.tell(progress, done)
	if watcher != nil {
		done.Outcomes, err = watcher.run(ctx, progress, f.watch && !s.isJSON())
	}
	progress.Stop()
	if s.isJSON() {
		if jsonErr := s.writeJSON(done); jsonErr != nil {
			return jsonErr
		}
	}
	return err
}

// drillFunc makes the interruption happen and fills in what it did.
type drillFunc func(ctx context.Context, progress *terminal.Progress, done *interrupted) error

// prepare finds out all that can be known to be wrong before anything is done.
func (s *session) prepare(ctx context.Context, f *interruptFlags, c cloud, targets []drill.Target) (drillFunc, error) {
	if f.via == viaQueue {
		url, err := s.queue(ctx, f.queueURL, c)
		if err != nil {
			return nil, err
		}
		return s.viaQueue(*f, c, url), nil
	}
	if f.role == "" && !c.emulated {
		return nil, usageErrorf("FIS needs a role to interrupt instances with: give --fis-role-arn, the ARN of a role that trusts " +
			"fis.amazonaws.com and has the managed policy AWSFaultInjectionSimulatorEC2Access; or use --via queue, which reclaims nothing")
	}
	if f.role == "" {
		f.role = "arn:aws:iam::" + c.place.Account + ":role/lifeboat-sandbox"
	}
	if err := drill.CheckSpot(ctx, c.instances, targets); err != nil {
		return nil, awsError{err}
	}
	return s.viaFIS(*f, c), nil
}

func (s *session) viaFIS(f interruptFlags, c cloud) drillFunc {
	poll := 3 * time.Second
	if c.emulated {
		poll = 250 * time.Millisecond
	}
	return func(ctx context.Context, progress *terminal.Progress, done *interrupted) error {
		ids, err := drill.Experiment{
			Place: c.place, RoleARN: f.role, Delay: f.delay, Poll: poll,
			Progress: func(text string) { progress.Step("%s", text) },
			Warn: func(text string) {
				progress.Print(s.err, s.err.Paint(terminal.Warn, "warning:")+" "+text+"\n")
			},
		}.Run(ctx, c.fis, done.Targets)
		done.Experiments = ids
		if err != nil {
			return awsError{err}
		}
		return nil
	}
}

func (s *session) viaQueue(f interruptFlags, c cloud, url string) drillFunc {
	return func(ctx context.Context, progress *terminal.Progress, done *interrupted) error {
		if f.delay > 0 {
			progress.Step("sending the notice in %s", terminal.Duration(f.delay))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(f.delay):
			}
		}
		for _, t := range done.Targets {
			progress.Step("writing the notice about %s into %s", t, url)
			n := drill.Notice{Place: c.place, Kind: f.noticeKind(), Target: t, Time: s.now(), ID: drill.NewID()}
			id, err := n.Send(ctx, c.queues, url)
			if err != nil {
				return awsError{err}
			}
			done.Messages = append(done.Messages, id)
		}
		return nil
	}
}

// queue finds the queue to write into.
func (s *session) queue(ctx context.Context, given string, c cloud) (string, error) {
	if given != "" {
		return given, nil
	}
	if c.queueURL != "" {
		return c.queueURL, nil
	}
	k8s, err := s.connect(ctx)
	if err != nil {
		return "", fmt.Errorf("finding the name of Lifeboat's queue (or give --queue-url): %w", err)
	}
	url, err := drill.FindQueue(ctx, c.queues, "lifeboat-"+strings.TrimPrefix(k8s.name, "lifeboat-"))
	if err != nil {
		return "", awsError{err}
	}
	return url, nil
}

// confirm asks before anything real is touched. Where nobody can be asked,
// --yes has to say it.
func (s *session) confirm(f interruptFlags, c cloud, targets []drill.Target) error {
	if c.emulated || f.yes {
		return nil
	}
	names := make([]string, 0, len(targets))
	for _, t := range targets {
		names = append(names, t.String())
	}
	what := fmt.Sprintf("EC2 account %s in %s will take these spot instances away, about %s from now: %s.",
		c.place.Account, c.place.Region, terminal.Duration(f.delay+drill.Lead), strings.Join(names, ", "))
	if f.via == viaQueue {
		what = fmt.Sprintf("Lifeboat will be told that these nodes are going away, and moves their pods off them (nothing is reclaimed): %s.", strings.Join(names, ", "))
	}
	if !s.typing {
		return usageErrorf("this is not a sandbox, and there is nobody to ask: add --yes if you mean it. %s", what)
	}
	s.err.Printf("%s\nGo on? [y/N] ", what)
	answer, err := bufio.NewReader(s.env.In).ReadString('\n')
	if err != nil && answer == "" {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("not confirmed: nothing was done")
}

// tell says what has been done.
func (s *session) tell(progress *terminal.Progress, done interrupted) {
	if s.isJSON() {
		return
	}
	for _, t := range done.Targets {
		text := fmt.Sprintf("the notice of %s is out, by FIS; EC2 takes it away in about %s", t, terminal.Duration(drill.Lead))
		if done.Via == viaQueue {
			text = fmt.Sprintf("wrote a %s about %s into the queue; this tests Lifeboat only, nothing is reclaimed", done.Kind, t)
		}
		progress.Print(s.out, text+"\n")
	}
}
