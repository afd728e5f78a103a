package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
)

const rootHelp = `Lifeboat gets pods off doomed AWS nodes before they go down.

Exit codes:
  0    done
  1    failed; standard error says why and what to do; doctor: something is
       broken; approve: nothing waits for approval; hold, release: there is
       nothing to hold or to release
  2    wrong usage; doctor: it could not look, or not everywhere
  3    plan: some pod cannot leave with its whole grace period in time;
       wire plan: there is something to change; convert: something has no
       equivalent in v1, and needs a person
  130  interrupted (Ctrl-C); what was begun has been cleaned up`

func newRoot(s *session) *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:   strings.ReplaceAll(s.name, " ", "-"),
		Short: "Get pods off doomed AWS nodes before they go down",
		Long:  rootHelp,
		Example: `  # The whole of it on this machine, with no cloud account
  lifeboat sandbox demo

  # What would happen to a node's pods if it were reclaimed now?
  lifeboat plan ip-10-0-1-5.ec2.internal

  # Why that, and which policy says so?
  lifeboat explain ip-10-0-1-5.ec2.internal

  # Interrupt a spot node on purpose and see it unfold
  lifeboat interrupt ip-10-0-1-5.ec2.internal --fis-role-arn arn:aws:iam::123456789012:role/fis --watch`,
	})
	command.Prepare(root, s.env, s.name)
	root.SetOut(s.out)
	root.SetErr(s.err)
	s.flags.Add(root)

	root.AddCommand(
		newApprove(s),
		newConvert(s),
		newDoctor(s),
		newExplain(s),
		newHold(s),
		newInterrupt(s),
		newNodeGroup(s),
		newPlan(s),
		newRelease(s),
		newWatch(s),
		newSandbox(s),
		newVersion(s),
		newWire(s),
	)
	command.NameExamples(root, s.name)
	return root
}

// arguments makes a wrong number of arguments a usage error that says what is
// wanted.
func arguments(least, most int, wanted string) cobra.PositionalArgs {
	return command.Arguments(least, most, wanted)
}

func (s *session) isJSON() bool { return s.flags.IsJSON() }
