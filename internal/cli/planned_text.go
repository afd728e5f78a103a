package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// write prints the plan for people.
func (p planned) write(s terminal.Stream, now time.Time) {
	p.writeHead(s, now)
	if len(p.Pods) == 0 {
		s.Printf("no pods run on this node\n")
		return
	}
	var ahead time.Duration // from now until the start
	if p.Begins != nil {
		ahead = p.Begins.Sub(now)
	}
	table := terminal.NewTable("POD", "STEP", "ASKED", "GONE BY", "GRACE", "LAST CALL")
	for _, like := range groupPods(p.Pods) {
		like.write(table, ahead)
	}
	table.Write(s)
	s.Printf("\n")
	p.writeVerdict(s, now)
}

// factIndent is the column where the values start.
const factIndent = 10

// title says which node and which notice the output is about.
func (p planned) title() (name, rest string) {
	name = p.Node
	if p.InstanceID != "" && p.InstanceID != p.Node {
		name += " (" + p.InstanceID + ")"
	}
	kind := p.Kind
	if p.EventTypeCode != "" {
		kind += " (" + p.EventTypeCode + ")"
	}
	if p.Supposed {
		return name, fmt.Sprintf("if a notice of kind %s arrived now", kind)
	}
	return name, "interrupted: " + cmp.Or(kind, "no open notice")
}

// writeTitle prints the title.
func (p planned) writeTitle(s terminal.Stream) {
	name, rest := p.title()
	if len(name)+len(rest)+2 > s.Columns() {
		s.Printf("%s,\n  %s\n", s.Paint(terminal.Bold, name), rest)
		return
	}
	s.Printf("%s, %s\n", s.Paint(terminal.Bold, name), rest)
}

func (p planned) writeHead(s terminal.Stream, now time.Time) {
	p.writeTitle(s)
	s.Fact(factIndent, "decision", terminal.Plain, p.Decision.Message)
	switch {
	case p.Deadline != nil && p.ownDeadline:
		s.Fact(factIndent, "deadline", terminal.Plain, terminal.Relative(p.Deadline.Time.Time, now)+" (Lifeboat terminates the instance when its pods have left, and not later than this)")
	case p.Deadline != nil:
		s.Fact(factIndent, "deadline", terminal.Plain, deadlineLine(p.Deadline, now))
	}
	if p.Approval != "" {
		style, text := terminal.Plain, p.Approval
		if p.AwaitsApproval {
			style, text = terminal.Warn, text+"; the plan below assumes an approval now"
		}
		s.Fact(factIndent, "approval", style, text)
	}
	if p.Begins != nil {
		s.Fact(factIndent, "starts", terminal.Plain, fmt.Sprintf("%s, at %s; the times below count from then", terminal.Relative(*p.Begins, now), formatClock(*p.Begins, now)))
	}
	for _, why := range p.Waits {
		s.Fact(factIndent, "waits", terminal.Warn, why)
	}
	if p.Replacement != "" {
		s.Fact(factIndent, "replaced", terminal.Plain, p.Replacement)
	}
	if p.Unreachable != "" {
		s.Fact(factIndent, "WARNING", terminal.Bad, p.Unreachable)
	}
	label := "karpenter"
	for _, line := range p.Karpenter.lines(p.doNotDisrupt, now) {
		s.Fact(factIndent, label, terminal.Plain, line)
		label = ""
	}
	s.Printf("\n")
}

func deadlineLine(d *v1beta1.Deadline, now time.Time) string {
	return fmt.Sprintf("%s, at %s (%s)", terminal.Relative(d.Time.Time, now), formatClock(d.Time.Time, now), view.DeadlineText(d.Type))
}

func (p planned) writeVerdict(s terminal.Stream, now time.Time) {
	text, fits := p.verdict(now)
	switch {
	case fits == nil:
		s.Printf("%s\n", text)
	case *fits:
		s.Printf("%s\n", s.Paint(terminal.Good, text))
	default:
		s.Printf("%s\n", s.Paint(terminal.Bad, text))
	}
	for _, fix := range p.fixes() {
		s.Fact(4, "  →", terminal.Plain, fix)
	}
}

// verdict says in one sentence whether all pods leave in time. fits is nil if no pod must leave.
func (p planned) verdict(now time.Time) (text string, fits *bool) {
	leaving, left, last := 0, 0, 0.0
	for _, pod := range p.Pods {
		if pod.Step == drain.StepStays && pod.Fits {
			continue
		}
		leaving++
		if !pod.Fits {
			left++
		}
		if pod.GoneInSeconds != nil {
			last = max(last, *pod.GoneInSeconds)
		}
	}
	switch {
	case p.Unreachable != "":
		return "no pod leaves, because no notice reaches the node", new(false)
	case left > 0 && p.Deadline != nil:
		return fmt.Sprintf("%d of %d pods cannot leave with their whole grace period before the deadline", left, leaving), new(false)
	case left > 0:
		return fmt.Sprintf("%d of %d pods cannot leave", left, leaving), new(false)
	case leaving == 0:
		return "no pod must leave", nil
	case !p.Fits: // an approval is pending, and the deadline does not wait for it
		return fmt.Sprintf("%d of %d pods leave with their whole grace period if a person approves now, and none otherwise", leaving, leaving), new(false)
	}
	spare := ""
	if p.Deadline != nil {
		spare = fmt.Sprintf(", %s before the deadline", terminal.Duration(p.Deadline.Time.Sub(now)-seconds(last)))
	}
	return fmt.Sprintf("%d of %d pods leave with their whole grace period%s", leaving, leaving, spare), new(true)
}

// fixes say how to make the pods fit, one line for all pods with the same advice.
func (p planned) fixes() []string {
	var order, all []string
	pods := map[string][]string{}
	for _, pod := range p.Pods {
		if pod.Fix == "" {
			continue
		}
		if pods[pod.Fix] == nil {
			order = append(order, pod.Fix)
		}
		pods[pod.Fix] = append(pods[pod.Fix], pod.Namespace+"/"+pod.Name)
	}
	for _, fix := range order {
		all = append(all, strings.Join(pods[fix], ", ")+": "+fix)
	}
	return append(all, p.Fix...)
}

// style returns how a pod's row is painted.
func (p plannedPod) style() terminal.Style {
	switch {
	case !p.Fits:
		return terminal.Bad
	case p.Overrides != "":
		return terminal.Warn
	case p.Step == drain.StepStays:
		return terminal.Dim
	}
	return terminal.Plain
}

// grace formats the grace period of a pod, and its full one if that is longer.
func (p plannedPod) grace() string {
	switch {
	case p.Step == drain.StepStays:
		return ""
	case p.GoneInSeconds == nil:
		return "none of " + terminal.Duration(seconds(p.WantedGraceSeconds))
	case p.GraceSeconds < p.WantedGraceSeconds:
		return terminal.Duration(seconds(p.GraceSeconds)) + " of " + terminal.Duration(seconds(p.WantedGraceSeconds))
	}
	return terminal.Duration(seconds(p.GraceSeconds))
}

// formatOffset formats a time relative to the start.
func formatOffset(at *float64, ahead time.Duration) string {
	if at == nil {
		return ""
	}
	d := seconds(*at) - ahead
	if d < 0 {
		return "-" + terminal.Duration(-d)
	}
	return "+" + terminal.Duration(d)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second))
}
