package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/adopt"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

const adoptKarpenterHelp = `Move the handling of interruptions from Karpenter to Lifeboat, and back. At each
moment at least one of the two receives notices:

  plan    shows the steps in their safe order, and changes nothing
  apply   checks that Lifeboat receives notices, sends a probe through each rule,
          asks, turns Karpenter's interruption queue off, and waits until
          Karpenter runs without it
  undo    checks that rules still fill Karpenter's queue, asks, turns the queue on
          again, and waits. Lifeboat receives notices until you stop it afterwards

If Helm installed Karpenter, apply and undo print the command and the values, and
run Helm only with --run-helm. With --tool terraform they print the lines to change.
They never change AWS: rules, queue and role belong to the tool that made them.`

const karpenterChart = "oci://public.ecr.aws/karpenter/karpenter"

// adoptionFlags are the flags of `adopt karpenter`.
type adoptionFlags struct {
	doctor    doctorFlags
	tool      string
	chart     string
	queue     string
	yes       bool
	skipProbe bool
	runHelm   bool
	timeout   time.Duration
}

func newAdopt(s *session) *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "adopt",
		Short: "Take over from another program that handles interruptions",
		Long:  "Take over the handling of interruptions from another program, and give it back.",
		Example: `  lifeboat adopt karpenter plan
  lifeboat adopt karpenter apply`,
	})
	of := command.Group(&cobra.Command{
		Use:   "karpenter",
		Short: "Take over the handling of interruptions from Karpenter",
		Long:  adoptKarpenterHelp,
		Example: `  lifeboat adopt karpenter plan
  lifeboat adopt karpenter apply

  # Karpenter was installed by Helm
  lifeboat adopt karpenter apply --run-helm

  # The way back
  lifeboat adopt karpenter undo`,
	})
	of.AddCommand(newAdoptPlan(s), newAdoptApply(s), newAdoptUndo(s))
	cmd.AddCommand(of)
	return cmd
}

func newAdoptPlan(s *session) *cobra.Command {
	var f adoptionFlags
	back := false
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what the cut-over from Karpenter would change",
		Long: `Show the steps of the cut-over from Karpenter, in the order that is safe. The command
changes nothing.

Exit codes: 0 nothing remains to be done; 3 there are changes to make, or a step
is blocked; 1 the cluster could not be read.`,
		Example: `  lifeboat adopt karpenter plan --cluster prod
  lifeboat adopt karpenter plan --tool terraform

  # The way back
  lifeboat adopt karpenter plan --undo`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.adoptionPlan(cmd.Context(), f, back)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&back, "undo", false, "show the way back")
	cmd.Flags().StringVar(&f.queue, "queue", "", "with --undo: name of Karpenter's queue (default: the one that it read before, or that rules fill)")
	return cmd
}

func newAdoptApply(s *session) *cobra.Command {
	var f adoptionFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Turn Karpenter's own handling of interruptions off",
		Long: `Turn Karpenter's own handling of interruptions off, once Lifeboat is known to receive
notices. The command can run again: it continues.

If Lifeboat stops during the change, the command gives Karpenter its queue back.

Exit codes: 0 Karpenter reads no queue; 3 the change is for you to make, with the
printed command or lines; 1 failure, and standard error says what was changed.`,
		Example: `  lifeboat adopt karpenter apply --cluster prod

  # In a pipeline, with Helm
  lifeboat adopt karpenter apply --yes --run-helm -o json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.adoptionApply(cmd.Context(), f)
		},
	}
	f.add(cmd)
	f.addApply(cmd)
	cmd.Flags().BoolVar(&f.skipProbe, "skip-probe", false, "send no probe through the rules: they forward probes only if lifeboat aws made them")
	return cmd
}

func newAdoptUndo(s *session) *cobra.Command {
	var f adoptionFlags
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Turn Karpenter's own handling of interruptions on again",
		Long: `Turn Karpenter's own handling of interruptions on again. Stop Lifeboat only after the
command has ended with exit code 0.

Exit codes: 0 Karpenter reads its queue; 3 the change is for you to make, with the
printed command or lines; 1 failure, and standard error says what was changed.`,
		Example: `  lifeboat adopt karpenter undo --cluster prod
  lifeboat adopt karpenter undo --queue Karpenter-prod`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.adoptionUndo(cmd.Context(), f)
		},
	}
	f.add(cmd)
	f.addApply(cmd)
	cmd.Flags().StringVar(&f.queue, "queue", "", "name of Karpenter's queue (default: the one that it read before, or that rules fill)")
	return cmd
}

func (f *adoptionFlags) add(cmd *cobra.Command) {
	f.doctor.addTarget(cmd)
	cmd.Flags().StringVar(&f.tool, "tool", "", "what changes Karpenter's settings: kubectl, helm or terraform (default: helm if Helm installed it, otherwise kubectl)")
	cmd.Flags().StringVar(&f.chart, "chart", karpenterChart, "name of Karpenter's chart, for Helm")
}

func (f *adoptionFlags) addApply(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.runHelm, "run-helm", false, "run the printed helm command")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long to wait for Karpenter's pods")
}

func (f *adoptionFlags) check() error {
	f.doctor.failOn = "broken"
	if f.tool != "" && !slices.Contains(adopt.Tools(), adopt.Tool(f.tool)) {
		return usageErrorf("unknown --tool %q: write kubectl, helm or terraform", f.tool)
	}
	if f.runHelm && f.tool != "" && f.tool != string(adopt.Helm) {
		return usageErrorf("--run-helm is for --tool helm: remove one of them")
	}
	return f.doctor.check()
}

// adoptionPlan shows a plan.
func (s *session) adoptionPlan(ctx context.Context, f adoptionFlags, back bool) error {
	a, err := s.readAdoption(ctx, f, back)
	if err != nil {
		return err
	}
	if s.isJSON() {
		if err := s.writeJSON(a.report(nil)); err != nil {
			return err
		}
	} else {
		a.show()
	}
	if !a.plan.Remains() {
		return nil
	}
	if !s.isJSON() && len(a.plan.Blocked()) == 0 {
		verb := "apply"
		if back {
			verb = "undo"
		}
		s.out.Printf("\nRun `%s adopt karpenter %s` to continue.\n", s.name, verb)
	}
	return exitError{Code: ExitChanges}
}

// blockedError is the error of a plan that is not safe.
func blockedError(steps []adopt.Step) error {
	return fmt.Errorf("nothing was changed, because a step is blocked: %s: %s", steps[0].Title, sentences(steps[0].Why))
}
