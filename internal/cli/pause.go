package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// defaultPause is how long a pause lasts without --for.
	defaultPause = 2 * time.Hour
	// clusterPause is the name of the Pause of the whole cluster.
	clusterPause = "cluster"
)

const pauseHelp = `Stop what Lifeboat does, in the cluster or for the nodes of one NodePool. A pause
ends automatically: after --for, or when you run lifeboat resume.

Stopped: planned changes, rebalance recommendations, failed status checks, and
requests of lifeboat drain. Nothing begins, and a drain in progress evicts no more
pods. Nodes that are cordoned stay cordoned.

Not stopped: spot interruptions, planned changes in their last hour, instances that
shut down, and terminations by an Auto Scaling group. AWS takes these instances in any
case, so their pods still leave in time. With --all they are stopped too: their pods
then stay, and are lost with the instance.

A pause never stops the intake of notices, lifecycle hooks of launches, heartbeats, or
the cordons and drains of Karpenter and other controllers.`

type pauseFlags struct {
	pool, note string
	lasts      time.Duration
	all        bool
}

func newPause(s *session) *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop Lifeboat's actions for a time",
		Long:  pauseHelp,
		Example: `  lifeboat pause --note "network incident 4711"
  lifeboat pause --nodepool databases --for 6h
  lifeboat pause --all --for 30m --note "stop everything while we look"`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len([]rune(f.note)) > maxNoteLength:
				return usageErrorf("--note has %d characters: the limit is %d", len([]rune(f.note)), maxNoteLength)
			case f.lasts < time.Second || f.lasts > record.MaxPause:
				return usageErrorf("invalid --for %s: write a duration from 1s to 24h, and pause again to extend it", f.lasts)
			}
			return s.pause(cmd.Context(), &f)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.lasts, "for", defaultPause, "time until the pause ends, at most 24h")
	flags.BoolVar(&f.all, "all", false, "also stop what cannot wait, such as spot interruptions: pods are lost")
	flags.StringVar(&f.note, "note", "", "reason, for people who read it later")
	return command.Outputs(cmd, command.OutputText, command.OutputJSON, command.OutputName)
}

func newResume(s *session) *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End a pause",
		Long: `End the pause of the cluster, or of one NodePool. What was stopped goes on: a drain
continues where it stopped, and policies are asked again about the rest.`,
		Example: `  lifeboat resume
  lifeboat resume --nodepool databases`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.resume(cmd.Context(), &f) },
	}
	f.register(cmd)
	return cmd
}

func (f *pauseFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.pool, "nodepool", "", "name of a Karpenter NodePool (default: the whole cluster)")
}

// name is the name of the Pause, as the CRD requires it.
func (f *pauseFlags) name() string {
	if f.pool == "" {
		return clusterPause
	}
	return "nodepool-" + f.pool
}

// pauseResult is what was paused.
type pauseResult struct {
	Pause    string             `json:"pause"`
	By       string             `json:"by"`
	Until    time.Time          `json:"until"`
	Stops    v1beta1.PauseScope `json:"stops"`
	NodePool string             `json:"nodePool,omitempty"`
	Note     string             `json:"note,omitempty"`
}

func (s *session) pause(ctx context.Context, f *pauseFlags) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	by, err := c.whoami(ctx)
	if err != nil {
		return err
	}
	now := s.now().Truncate(time.Second)
	p := v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: f.name()}}
	spec := v1beta1.PauseSpec{
		By: by, StartTime: metav1.NewTime(now), Until: metav1.NewTime(now.Add(f.lasts)), Stops: v1beta1.PauseDeferrable,
		NodePool: f.pool, Note: f.note,
	}
	if f.all {
		spec.Stops = v1beta1.PauseEverything
	}
	if err := c.writePause(ctx, &p, spec); err != nil {
		return err
	}
	switch r := resultOf(&p); {
	case s.isJSON():
		return s.writeJSON(r)
	case s.flags.Output == command.OutputName:
		s.out.Printf("pause.%s/%s\n", v1beta1.GroupVersion.Group, p.Name)
	default:
		s.printPause(&p, f)
	}
	return nil
}

// writePause creates the Pause, or replaces the spec of the one that exists.
func (c cluster) writePause(ctx context.Context, p *v1beta1.Pause, spec v1beta1.PauseSpec) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	p.Spec = spec
	err := c.Create(ctx, p)
	if apierrors.IsAlreadyExists(err) {
		if err = c.Get(ctx, client.ObjectKeyFromObject(p), p); err == nil {
			p.Spec = spec
			err = c.Update(ctx, p)
		}
	}
	if err != nil {
		return fmt.Errorf("writing the pause %s: %w", p.Name, err)
	}
	return nil
}

func resultOf(p *v1beta1.Pause) pauseResult {
	return pauseResult{
		Pause: p.Name, By: p.Spec.By, Until: record.PauseEnd(p).UTC(), Stops: p.Spec.Stops, NodePool: p.Spec.NodePool, Note: p.Spec.Note,
	}
}

func (s *session) printPause(p *v1beta1.Pause, f *pauseFlags) {
	s.out.Printf("%s\n", s.out.Paint(terminal.Bold, record.PauseGate(p).Why))
	stopped := "planned changes, rebalance recommendations, failed status checks and requests"
	goesOn := "spot interruptions, shutdowns, group terminations, and planned changes in their last hour: their pods still leave in time"
	if f.all {
		stopped, goesOn = "everything: pods on instances that AWS takes are lost", "the intake of notices, and lifecycle hooks of launches"
	}
	s.out.Fact(factIndent, "stopped", terminal.Plain, stopped)
	s.out.Fact(factIndent, "goes on", terminal.Plain, goesOn)
	s.out.Fact(factIndent, "end it", terminal.Plain, "`"+record.ResumeCommand(p, s.name)+"`")
}

func (s *session) resume(ctx context.Context, f *pauseFlags) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	all, err := c.pauses(ctx)
	if err != nil {
		return err
	}
	var others []string
	for i := range all {
		p := &all[i]
		if !record.PauseInForce(p, s.now()) {
			continue
		}
		if p.Name != f.name() {
			others = append(others, "`"+record.ResumeCommand(p, s.name)+"`")
			continue
		}
		limited, cancel := c.limit(ctx)
		defer cancel()
		if err := c.Delete(limited, p); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("ending the pause %s: %w", p.Name, err)
		}
		s.out.Printf("ended: %s\n", record.PauseGate(p).Why)
		return nil
	}
	if len(others) > 0 {
		return fmt.Errorf("%s is not paused; to end other pauses, run %s", f.name(), strings.Join(others, " or "))
	}
	return fmt.Errorf("nothing is paused; `%s status` shows what waits", s.name)
}

// pauses lists all pauses. A cluster with an older release has none.
func (c cluster) pauses(ctx context.Context) ([]v1beta1.Pause, error) {
	var all v1beta1.PauseList
	err := c.list(ctx, "pauses", &all)
	if command.IsNotInstalled(err) {
		return nil, nil
	}
	return all.Items, err
}
