package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/report"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// outputHTML is the format of a page.
const outputHTML = "html"

// maxSince is the longest span of a report.
const maxSince = 366 * 24 * time.Hour

func newReport(s *session) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Sum up what interruptions did",
		Long: `Sum up the interruptions of a span of time: what came, what was done, which pods
were lost, and how much time was left before the deadlines.

The report reads Interruptions. The controller deletes them some time after they
complete (chart value controller.ttl), and the report says what is missing.`,
		Example: `  lifeboat report --since 7d
  lifeboat report --since 24h -o json
  lifeboat report --since 7d -o html > report.html`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := parseDays(since)
			if err != nil || span <= 0 || span > maxSince {
				return usageErrorf("invalid --since %q: write a span such as 7d or 24h, up to 366d", since)
			}
			return s.report(cmd.Context(), span)
		},
	}
	cmd.Flags().StringVar(&since, "since", "7d", "span of time until now, such as 7d or 24h")
	return command.Outputs(cmd, command.OutputText, command.OutputJSON, outputHTML)
}

func (s *session) report(ctx context.Context, span time.Duration) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var all v1beta1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); err != nil {
		return err
	}
	now := s.now().Truncate(time.Second)
	r := report.New(report.Facts{Cluster: c.name, From: now.Add(-span).UTC(), To: now.UTC(), All: all.Items, Kept: c.retention(ctx)})
	switch s.flags.Output {
	case command.OutputJSON:
		return s.writeJSON(r)
	case outputHTML:
		return r.WriteHTML(s.out)
	}
	s.printReport(r)
	return nil
}

// retention is how long the controller keeps Interruptions that are completed; zero: not known.
func (c cluster) retention(ctx context.Context) time.Duration {
	var own appsv1.Deployment
	if found, err := c.findController(ctx, &own); err != nil || !found {
		return 0
	}
	for i := range own.Spec.Template.Spec.Containers {
		for _, arg := range own.Spec.Template.Spec.Containers[i].Args {
			if text, ok := strings.CutPrefix(arg, "--ttl="); ok {
				kept, _ := time.ParseDuration(text)
				return kept
			}
		}
	}
	return 0
}

func (s *session) printReport(r report.Report) {
	if r.Cluster != "" {
		s.out.Fact(factIndent, "cluster", terminal.Bold, r.Cluster)
	}
	s.out.Fact(factIndent, "from", terminal.Plain, report.Clock(r.From)+" to "+report.Clock(r.To))
	for _, gap := range r.Gaps {
		s.out.Fact(factIndent, "gap", terminal.Warn, gap)
	}
	lost := terminal.Plain
	if r.Total.PodsLost > 0 {
		lost = terminal.Bad
	}
	s.out.Fact(factIndent, "in all", terminal.Plain, fmt.Sprintf("%s, %d of them under way", counted(r.Total.Interruptions, "interruption"), r.Total.Open))
	s.out.Fact(factIndent, "pods", lost, fmt.Sprintf("%d left in time, %d lost", r.Total.PodsMoved, r.Total.PodsLost))
	s.out.Fact(factIndent, "to spare", terminal.Plain, "at least "+report.Spare(r.Total.LeastSpareSeconds))
	if len(r.Interruptions) == 0 {
		return
	}
	s.out.Printf("\n")
	kinds := terminal.NewTable("KIND", "COUNT", "UNDER WAY", "MOVED", "LOST", "LEAST TO SPARE")
	for _, k := range r.Kinds {
		kinds.Row(cells(k.Kind, k.Interruptions, k.Open, k.PodsMoved, k.PodsLost, report.Spare(k.LeastSpareSeconds))...)
	}
	kinds.Write(s.out)
	s.out.Printf("\n")
	rows := terminal.NewTable("NOTICE", "NODE", "KIND", "ACTION", "PHASE", "MOVED", "LOST", "TO SPARE")
	for _, i := range r.Interruptions {
		rows.Row(cells(report.Clock(i.At), i.Node, i.Kind, i.Action, i.Phase, i.PodsMoved, i.PodsLost, report.Spare(i.SpareSeconds))...)
		for _, note := range i.Notes {
			rows.Under(terminal.Cell{Text: note})
		}
	}
	rows.Write(s.out)
}

func cells(values ...any) []terminal.Cell {
	row := make([]terminal.Cell, 0, len(values))
	for _, v := range values {
		row = append(row, terminal.Cell{Text: fmt.Sprint(v)})
	}
	return row
}
