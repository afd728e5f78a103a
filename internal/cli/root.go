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
	s.flags.Add(root, s.env.Getenv)
	s.flags.Connection.Add(root)

	addGroups(root, []commandGroup{
		{"Try Lifeboat, and test it:", []*cobra.Command{newSandbox(s), newInterrupt(s)}},
		{"Know before an interruption:", []*cobra.Command{newPlan(s), newExplain(s), newDoctor(s)}},
		{"See what happens:", []*cobra.Command{newStatus(s), newWatch(s), newConsole(s), newReport(s)}},
		{"Decide about an interruption:", []*cobra.Command{newApprove(s), newHold(s), newRelease(s), newPause(s), newResume(s)}},
		{"Drain nodes yourself:", []*cobra.Command{newDrain(s), newUncordon(s)}},
		{"Set up:", []*cobra.Command{newAWS(s), newAdopt(s), newMigrate(s), newNodeGroup(s)}},
		{"Other:", []*cobra.Command{newSupportBundle(s), newVersion(s)}},
	})
	s.completeNodeNames(root)
	command.DescribeOutputs(root)
	command.NameExamples(root, s.name)
	return root
}

// commandGroup is a heading in the help, with its commands.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// addGroups adds the commands to the root. The last group has the commands of cobra as well.
func addGroups(root *cobra.Command, groups []commandGroup) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
		root.SetHelpCommandGroupID(g.title)
		root.SetCompletionCommandGroupID(g.title)
	}
}

// arguments makes a wrong number of arguments a usage error that says what is
// wanted.
func arguments(least, most int, wanted string) cobra.PositionalArgs {
	return command.Arguments(least, most, wanted)
}

func (s *session) isJSON() bool { return s.flags.IsJSON() }
