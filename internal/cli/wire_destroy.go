package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

func newWireDestroy(s *session) *cobra.Command {
	var f wireFlags
	cmd := &cobra.Command{
		Use:   "destroy --cluster NAME",
		Short: "Take the AWS wiring of a cluster away",
		Long: `Take the AWS wiring of a cluster away: first the rules, then the queues, and only
what lifeboat wire made. It says how many messages are in the queues, and asks.

Lifeboat then hears of interruptions only through its other ways in. SQS does
not give a queue's name out again for 60 seconds.`,
		Example: `  lifeboat wire destroy --cluster prod --region eu-west-1`,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.wireDestroy(cmd.Context(), f)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.adopt, "adopt", false, "delete rules of the wiring even if they have targets of somebody else's")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func (s *session) wireDestroy(ctx context.Context, f wireFlags) error {
	w, err := s.connectWiring(ctx, f)
	if err != nil {
		return err
	}
	observed, err := w.observe(ctx)
	if err != nil {
		return err
	}
	plan := wiring.Teardown(w.wanted, observed, wiring.Options{Adopt: f.adopt})
	if !s.isJSON() {
		s.showPlan(plan)
	}
	if len(plan.Conflicts) > 0 {
		return conflictError(plan)
	}
	if !plan.Empty() {
		what := fmt.Sprintf("Lifeboat in cluster %s will hear nothing from AWS account %s in %s any more. ", w.wanted.Cluster, w.wanted.Account, w.wanted.Region) +
			fmt.Sprintf("Messages in the queues that will be lost: about %d, and %d in the dead-letter queue.", observed.Queue.Messages(), observed.DeadLetter.Messages())
		if err := s.askBefore(what, f.yes); err != nil {
			return err
		}
	}
	if _, err := s.carryOut(ctx, w, plan); err != nil {
		return err
	}
	if s.isJSON() {
		return s.writeJSON(reportPlan(plan))
	}
	return nil
}
