package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

func newNodeGroupDescribe(s *session) *cobra.Command {
	return command.ObjectOutputs(&cobra.Command{
		Use:     "describe NAME",
		Aliases: []string{"show"},
		Short:   "Show the state and the problems of a node group",
		Long: `Show a node group: its sizes, its instances by state, and the instances that a hook
holds, since when and until when. It also shows how long launches take, the
problems and how to fix them, and what happens on AWS when you delete the object.

NAME is the name of the NodeGroup or of its Auto Scaling group.`,
		Example: `  lifeboat nodegroup describe workers
  lifeboat nodegroup describe workers -o json | jq '.status.findings'`,
		Args: arguments(1, 1, "one node group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.describeNodeGroup(cmd.Context(), args[0])
		},
	})
}

func (s *session) describeNodeGroup(ctx context.Context, name string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	g, err := s.nodeGroup(ctx, c, name)
	if err != nil {
		return err
	}
	if s.flags.Output != command.OutputText {
		prepareOutput(g)
		return s.writeObject(g, g.Name)
	}
	s.describeHead(g)
	s.describeHeld(g)
	s.describeFailures(g)
	s.describeFindings(g)
	return nil
}

// groupIndent is the column where the values start.
const groupIndent = 14

func (s *session) describeHead(g *v1beta1.NodeGroup) {
	s.out.Printf("%s\n", s.out.Paint(terminal.Bold, "node group "+g.Name))
	fact := func(label, text string, style terminal.Style) {
		if text != "" {
			s.out.Fact(groupIndent, label, style, command.Rename(text, s.name))
		}
	}
	group := "Auto Scaling group " + nodegroup.Name(g)
	if g.Status.Operator != "" {
		group += ", managed by " + g.Status.Operator
	}
	fact("group", group, terminal.Plain)
	ready, style, why := readyCondition(g)
	fact("ready", ready+": "+why, style)
	for _, name := range []string{v1beta1.ConditionHooksReady, v1beta1.ConditionSynced} {
		c := meta.FindStatusCondition(g.Status.Conditions, name)
		if c == nil || c.Status != metav1.ConditionTrue && c.Message == why {
			continue // the same message is printed above
		}
		fact(map[string]string{v1beta1.ConditionHooksReady: "hooks", v1beta1.ConditionSynced: "synced"}[name], c.Message, terminal.Plain)
	}
	st := g.Status
	fact("sizes", fmt.Sprintf("%d desired, %d to %d", st.Desired, st.Min, st.Max), terminal.Plain)
	fact("instances", instancesLine(st.Instances), terminal.Plain)
	fact("warm pool", poolLine(g.Spec.WarmPool), terminal.Plain)
	if b := st.Boots; b != nil && b.Count > 0 {
		fact("into service", fmt.Sprintf("the last took %s, the longest %s, of %d", formatSeconds(b.LastSeconds), formatSeconds(b.LongestSeconds), b.Count), terminal.Plain)
	}
	fact("suspended", strings.Join(st.Suspended, ", "), terminal.Warn)
	fact("deleting it", st.Deletion, terminal.Plain)
}

func formatSeconds(n int32) string { return terminal.Duration(time.Duration(n) * time.Second) }

// instancesLine formats the counts that are not zero.
func instancesLine(n v1beta1.InstanceCounts) string {
	parts := []string{fmt.Sprintf("%d in service", n.InService)}
	for _, more := range []struct {
		n    int32
		what string
	}{{n.Joining, "joining"}, {n.Warming, "warming"}, {n.Warm, "warm"}, {n.Leaving, "leaving"}, {n.Retained, "retained"}, {n.Other, "in other states"}} {
		if more.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", more.n, more.what))
		}
	}
	return strings.Join(parts, ", ")
}

// poolLine describes the declared warm pool.
func poolLine(p *v1beta1.WarmPool) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("declared: %s, at least %d", strings.ToLower(p.State), p.MinSize)
	if p.MaxPreparedCapacity != nil {
		text += fmt.Sprintf(", at most %d including those in service", *p.MaxPreparedCapacity)
	}
	if p.ReuseOnScaleIn {
		text += ", reused on scale-in"
	}
	return text
}

// describeHeld lists the instances that hooks hold, with the time left.
func (s *session) describeHeld(g *v1beta1.NodeGroup) {
	if len(g.Status.Actions) == 0 {
		if g.Status.PendingActions > 0 {
			s.out.Printf("\nHooks hold %s.\n", counted(int(g.Status.PendingActions), "instance"))
		}
		return
	}
	s.out.Printf("\nHeld by hooks:\n")
	now := s.now()
	table := terminal.NewTable("INSTANCE", "STATE", "NODE", "HOOK", "HELD", "LEFT")
	for _, a := range g.Status.Actions {
		left := terminal.Cell{Text: "unknown"}
		if a.Expires != nil {
			left.Text = terminal.Duration(a.Expires.Sub(now))
			if !a.Expires.After(now) {
				left = terminal.Cell{Text: "expired", Style: terminal.Bad}
			}
		}
		table.Row(terminal.Cell{Text: a.InstanceID, Style: terminal.Bold}, terminal.Cell{Text: a.State}, terminal.Cell{Text: orDash(a.NodeName)},
			terminal.Cell{Text: orDash(a.Hook)}, terminal.Cell{Text: terminal.Duration(now.Sub(a.Since.Time))}, left)
		if a.Message != "" {
			table.Under(terminal.Cell{Text: a.Message, Style: terminal.Dim})
		}
	}
	table.Write(s.out)
	if more := int(g.Status.PendingActions) - len(g.Status.Actions); more > 0 {
		s.out.Printf("and %d more\n", more)
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (s *session) describeFailures(g *v1beta1.NodeGroup) {
	if len(g.Status.Failures) == 0 {
		return
	}
	s.out.Printf("\nFailures, newest first (%d in a row):\n", g.Status.ConsecutiveFailures)
	table := terminal.NewTable("WHEN", "INSTANCE")
	for _, f := range g.Status.Failures {
		table.Row(terminal.Cell{Text: terminal.Relative(f.Time.Time, s.now())}, terminal.Cell{Text: orDash(f.InstanceID)})
		table.Under(terminal.Cell{Text: f.Message})
	}
	table.Write(s.out)
}

func (s *session) describeFindings(g *v1beta1.NodeGroup) {
	if len(g.Status.Findings) == 0 {
		return
	}
	s.out.Printf("\nFindings:\n")
	for _, f := range g.Status.Findings {
		style := terminal.Dim
		switch finding.Severity(f.Severity) {
		case finding.Broken:
			style = terminal.Bad
		case finding.Unknown, finding.Warning:
			style = terminal.Warn
		}
		s.out.Printf("  %s %s\n", s.out.Paint(style, strings.ToUpper(f.Severity)), s.out.Paint(terminal.Dim, f.ID))
		s.out.Fact(4, "", terminal.Plain, f.Message)
		if f.Fix != "" {
			s.out.Fact(6, "    →", terminal.Plain, command.Rename(f.Fix, s.name))
		}
	}
}
