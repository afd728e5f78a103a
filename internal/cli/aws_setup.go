package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

func newAWSSetup(s *session) *cobra.Command {
	var f awsFlags
	cmd := &cobra.Command{
		Use:   "setup --cluster NAME",
		Short: "Create or correct the AWS resources of a cluster",
		Long: `Create or correct the AWS resources of a cluster. The command shows the changes and
asks for confirmation. If it is interrupted, run it again: it continues.`,
		Example: `  lifeboat aws setup --cluster prod --region eu-west-1

  # Include the lifecycle hooks of Auto Scaling groups
  lifeboat aws setup --cluster prod --groups nodes-a,nodes-b

  # Share one topic and its three rules with other clusters of the account
  lifeboat aws setup --cluster prod --shared-topic lifeboat-shared

  # Run in a pipeline
  lifeboat aws setup --cluster prod --yes -o json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given(cmd)
			if err := f.check(); err != nil {
				return err
			}
			return s.awsSetup(cmd.Context(), f)
		},
	}
	f.add(cmd)
	f.addGroups(cmd)
	f.addFewRules(cmd)
	f.addTopic(cmd, keptTopic)
	f.addSenders(cmd)
	cmd.Flags().BoolVar(&f.adopt, "adopt", false, "take over resources with the same names that lifeboat aws did not create")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func (s *session) awsSetup(ctx context.Context, f awsFlags) error {
	w, err := s.connectSetup(ctx, f)
	if err != nil {
		return err
	}
	plan, hooks, err := s.planSetup(ctx, w, f)
	if err != nil {
		return err
	}
	if !s.isJSON() {
		s.showPlan(plan, hooks)
	}
	if len(plan.Conflicts) > 0 {
		return conflictError(plan)
	}
	if err := missingGroupsError(hooks); err != nil {
		return err
	}
	if !plan.Empty() || hookSteps(hooks) > 0 {
		what := fmt.Sprintf("This changes AWS account %s in %s.", w.wanted.Account, w.wanted.Region) + launchWarning(hooks)
		if err := s.askBefore(ctx, what, f.yes); err != nil {
			return err
		}
	}
	applied, err := s.applyPlan(ctx, w, plan)
	if err != nil {
		return err
	}
	// The hooks come last, so that the rules already deliver their messages.
	if err := s.applyHooks(ctx, w, hooks); err != nil {
		return err
	}
	if s.isJSON() {
		done := reportPlan(plan, hooks)
		done.Applied = &applied
		return s.writeJSON(done)
	}
	s.out.Printf("\nThe queue: %s\n", applied.QueueURL)
	if !plan.Empty() {
		s.out.Printf("Attach the policy that `%s aws iam --cluster %s` prints to the role of lifeboatd's pods, and install the chart with\n", s.name, f.cluster)
		s.out.Printf("  --set-string aws.queueURL=%s --set-string aws.clusterName=%s\n", applied.QueueURL, f.cluster)
	}
	return nil
}

// applyPlan applies a plan and prints each change.
func (s *session) applyPlan(ctx context.Context, w setupClients, plan awssetup.Plan) (awssetup.Applied, error) {
	verbs := map[awssetup.Action]string{awssetup.Create: "created", awssetup.Update: "changed", awssetup.Delete: "deleted"}
	if !s.isJSON() && !plan.Empty() {
		s.out.Printf("\n")
	}
	applied, err := plan.Apply(ctx, w.clients, func(c awssetup.Change) {
		if !s.isJSON() {
			s.out.Printf("%s %s %s\n", s.out.Paint(terminal.Good, verbs[c.Action]), c.Kind, c.Name)
		}
	})
	if err != nil {
		return awssetup.Applied{}, awsError{fmt.Errorf("%w (run it again to continue)", err)}
	}
	return applied, nil
}
