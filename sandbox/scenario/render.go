package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// RenderMoment writes the timeline, a line per moment, as it happens.
func RenderMoment(s terminal.Stream) func(Moment) {
	return func(m Moment) {
		clock := ""
		if m.Seconds != nil {
			clock = offset(m.Seconds)
		}
		sign, style := signOf(m.Kind)
		who := m.Node
		if m.Pod != "" {
			_, who, _ = strings.Cut(m.Pod, "/")
		}
		s.Printf("%s  %s %s %s\n", s.Paint(terminal.Dim, fmt.Sprintf("%8s", clock)), s.Paint(style, sign),
			s.Paint(terminal.Bold, fmt.Sprintf("%-26s", who)), s.Paint(textStyle(m.Kind), m.Text))
	}
}

// signOf is the sign before a moment, and its colour. The sign is enough without colour.
func signOf(k MomentKind) (string, terminal.Style) {
	switch k {
	case MomentNotice, MomentRebalance, MomentDeadline, MomentPowerLost:
		return "!", terminal.Warn
	case MomentLost, MomentCut, MomentFailed:
		return "✗", terminal.Bad
	case MomentWhole, MomentEmpty, MomentMet, MomentReady, MomentOpen, MomentAnswered:
		return "✓", terminal.Good
	case MomentAsked, MomentCordoned, MomentAtRisk, MomentShortened, MomentLaunched, MomentProtected, MomentLifecycle:
		return "→", terminal.Plain
	default:
		return "·", terminal.Dim
	}
}

func textStyle(k MomentKind) terminal.Style {
	switch k {
	case MomentStep, MomentMet, MomentReported, MomentRecorded, MomentJoined, MomentClaim:
		return terminal.Dim
	case MomentFailed, MomentLost, MomentCut:
		return terminal.Bad
	default:
		return terminal.Plain
	}
}

// Render writes the report of a scenario: a line for each pod, and the summary.
func Render(s terminal.Stream, r *Report) {
	if len(r.Pods) > 0 {
		renderPods(s, r)
	}
	if drawn := chart(r.Capacity, r.end); len(drawn) > 0 {
		s.Printf("\nReady pods (#) of the wanted ones, by seconds since the notice\n")
		for _, line := range drawn {
			s.Printf("%s\n", line)
		}
	}
	s.Printf("\n%s\n", r.Summary())
	for _, f := range r.Failures {
		s.Printf("%s %s\n", s.Paint(terminal.Bad, "✗"), f)
	}
	if r.Passed {
		s.Printf("%s\n", s.Paint(terminal.Good, "✓ every expectation held"))
	}
}

func renderPods(s terminal.Stream, r *Report) {
	table := terminal.NewTable("POD", "NODE", "ASKED", "NEEDS", "GRACE", "OVER", "TO SPARE", "VERDICT")
	for _, p := range r.Pods {
		table.Row(
			terminal.Cell{Text: p.Name}, terminal.Cell{Text: p.Node},
			terminal.Cell{Text: offset(p.Asked)}, terminal.Cell{Text: number(&p.StopSeconds)},
			terminal.Cell{Text: number(p.GraceSeconds)}, terminal.Cell{Text: offset(p.Over)},
			terminal.Cell{Text: number(p.SecondsToSpare)}, verdictCell(p.Verdict),
		)
	}
	table.Write(s)
}

// Summary is the report in one sentence.
func (r *Report) Summary() string {
	parts := []string{
		count1(r.Notices, "notice") + " recorded",
		count1(r.PodsMoved, "pod") + " moved whole",
		strconv.Itoa(r.PodsCut) + " cut short",
		strconv.Itoa(r.PodsLost) + " lost",
	}
	if r.PodsKept > 0 {
		parts = append(parts, strconv.Itoa(r.PodsKept)+" left alone")
	}
	if h := r.Hooks; h != nil {
		parts = append(parts, fmt.Sprintf("%d of %s answered, %d timed out", h.Answered, count1(h.Held, "lifecycle hook"), h.TimedOut))
	}
	if r.SecondsToCordon != nil {
		parts = append(parts, "cordoned after "+number(r.SecondsToCordon))
	}
	if r.SecondsToSpare != nil {
		parts = append(parts, number(r.SecondsToSpare)+" to spare")
	}
	if r.LowestReady != nil && r.SecondsBelowWanted != nil {
		parts = append(parts, fmt.Sprintf("never fewer than %d ready, %s below what is wanted", *r.LowestReady, number(r.SecondsBelowWanted)))
	}
	return strings.Join(parts, ", ")
}

func count1(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func verdictCell(v Verdict) terminal.Cell {
	switch v {
	case Whole:
		return terminal.Cell{Text: string(v), Style: terminal.Good}
	case Cut, Lost:
		return terminal.Cell{Text: string(v), Style: terminal.Bad}
	default:
		return terminal.Cell{Text: string(v)}
	}
}

func offset(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1fs", positiveZero(*s))
}

func number(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.1fs", positiveZero(*s))
}

// positiveZero prevents the output -0.0.
func positiveZero(s float64) float64 {
	if math.Abs(s) < 0.05 {
		return 0
	}
	return s
}
