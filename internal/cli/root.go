package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

const rootHelp = `Lifeboat moves pods off AWS nodes before an interruption stops the nodes.

Exit codes:
  0    success
  1    failure; standard error says why and what to do next; doctor, status:
       something is broken; approve: nothing waits for approval; hold, release:
       there is nothing to hold or to release
  2    wrong usage
  3    plan: some pod cannot leave with its whole grace period in time;
       aws plan, adopt: there are changes to make; migrate: some input has no
       equivalent and needs manual work; status: something waits for a person;
       doctor: some checks could not run
  4    doctor: there are warnings, if --fail-on counts them
  130  stopped by Ctrl-C; temporary resources were cleaned up`

func newRoot(s *session) *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:   strings.ReplaceAll(s.name, " ", "-"),
		Short: "Move pods off AWS nodes before an interruption",
		Long:  rootHelp,
		Example: `  # Try everything on this machine, without a cloud account
  lifeboat sandbox demo

  # Predict what a reclaim would do to a node's pods
  lifeboat plan ip-10-0-1-5.ec2.internal

  # Show which policy and rule decide, and why
  lifeboat explain ip-10-0-1-5.ec2.internal

  # Interrupt a spot node on purpose and follow its drain
  lifeboat interrupt ip-10-0-1-5.ec2.internal --fis-role-arn arn:aws:iam::123456789012:role/fis --watch`,
	})
	command.Prepare(root, s.env, s.name)
	root.SetOut(s.out)
	root.SetErr(s.err)
	s.flags.Add(root)
	s.flags.Connection.Add(root)

	root.AddCommand(
		newAdopt(s),
		newApprove(s),
		newAWS(s),
		newConsole(s),
		newDoctor(s),
		newDrain(s),
		newExplain(s),
		newHold(s),
		newInterrupt(s),
		newMigrate(s),
		newNodeGroup(s),
		newPause(s),
		newPlan(s),
		newRelease(s),
		newReport(s),
		newResume(s),
		newWatch(s),
		newSandbox(s),
		newStatus(s),
		newSupportBundle(s),
		newUncordon(s),
		newVersion(s),
	)
	s.completeNodeNames(root)
	command.DescribeOutputs(root)
	command.NameExamples(root, s.name)
	return root
}

// arguments makes a wrong number of arguments a usage error that says what is
// wanted.
func arguments(least, most int, wanted string) cobra.PositionalArgs {
	return command.Arguments(least, most, wanted)
}

func (s *session) isJSON() bool { return s.flags.IsJSON() }
