package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

func newAWSDestroy(s *session) *cobra.Command {
	var f awsFlags
	cmd := &cobra.Command{
		Use:   "destroy --cluster NAME",
		Short: "Delete the AWS resources of a cluster",
		Long: `Delete the AWS resources of a cluster: first the rules, then the queues, and only
what lifeboat aws created. The command shows how many messages are in the queues
and asks for confirmation.

Before that it deletes the hooks lifeboat-launch and lifeboat-terminate of the
groups that the rules are limited to, or that --groups names. When a hook is
deleted, AWS abandons the launches that it holds and continues the terminations.
Therefore the command deletes nothing while an instance is launching or
terminating.

A topic that clusters share, and its rules, stay until the last cluster leaves it.

Afterwards Lifeboat receives notices only from its other sources. SQS blocks the
names of deleted queues for 60 seconds.`,
		Example: `  lifeboat aws destroy --cluster prod --region eu-west-1`,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given(cmd)
			if err := f.check(); err != nil {
				return err
			}
			return s.awsDestroy(cmd.Context(), f)
		},
	}
	f.add(cmd)
	f.addGroups(cmd)
	f.addTopic(cmd, "default: the topic that the queue's tag names")
	cmd.Flags().BoolVar(&f.adopt, "adopt", false, "delete rules even if they have other targets")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func (s *session) awsDestroy(ctx context.Context, f awsFlags) error {
	w, err := s.connectSetup(ctx, f)
	if err != nil {
		return err
	}
	w.wanted.Topic = f.topic
	observed, err := w.observe(ctx)
	if err != nil {
		return err
	}
	plan := awssetup.Teardown(w.wanted, observed, awssetup.Options{Adopt: f.adopt})
	hooks, err := s.planTeardown(ctx, w, f, observed)
	if err != nil {
		return err
	}
	if !s.isJSON() {
		s.showPlan(plan, hooks)
	}
	if len(plan.Conflicts) > 0 {
		return conflictError(plan)
	}
	if err := heldHooksError(hooks); err != nil {
		return err
	}
	if !plan.Empty() || hookSteps(hooks) > 0 {
		what := fmt.Sprintf("Lifeboat in cluster %s will no longer receive notices from AWS account %s in %s. ", w.wanted.Cluster, w.wanted.Account, w.wanted.Region) +
			fmt.Sprintf("Messages in the queues that will be lost: about %d, and %d in the dead-letter queue.", observed.Queue.Messages(), observed.DeadLetter.Messages())
		if err := s.askBefore(ctx, what, f.yes); err != nil {
			return err
		}
	}
	// The hooks come first: without the rules no answer to them would come.
	if err := s.applyHooks(ctx, w, hooks); err != nil {
		return err
	}
	if _, err := s.applyPlan(ctx, w, plan); err != nil {
		return err
	}
	if s.isJSON() {
		return s.writeJSON(reportPlan(plan, hooks))
	}
	return nil
}

// planTeardown plans the deletion of the hooks of the selected groups: those of
// --groups, or those that the rules are limited to.
func (s *session) planTeardown(ctx context.Context, w setupClients, f awsFlags, o awssetup.Observed) ([]plannedHooks, error) {
	if names, limits := awssetup.LimitedTo(o); f.groups == "" && limits {
		f.groups = strings.Join(names, ",")
	}
	groups, err := s.selectedGroups(ctx, f)
	if err != nil {
		return nil, err
	}
	return w.planUnhook(ctx, s, groups)
}
