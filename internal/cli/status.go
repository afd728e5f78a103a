package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// exitNeedsPerson is the exit code of status when something waits for a person.
const exitNeedsPerson = 3

func newStatus(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show health, what is under way and what waits for a person",
		Long: `Show on one screen whether Lifeboat runs, which interruptions are under way, and
what waits for a person. Each of those has a deadline or the command to run.

It reads the cluster only. lifeboat doctor also checks the AWS resources.

Exit codes: 0 nothing to do; 1 Lifeboat does not run as it should; 3 something
waits for a person.`,
		Example: `  lifeboat status
  lifeboat status -o json | jq -r '.needs[].command'`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.status(cmd.Context()) },
	}
}

// statusReport is what status shows.
type statusReport struct {
	Cluster string `json:"cluster,omitempty"`
	// Health is one sentence about the installation, and Problems what is wrong with it.
	Health   string            `json:"health"`
	Problems []finding.Finding `json:"problems"`
	UnderWay underWay          `json:"underWay"`
	// Needs lists what waits for a person.
	Needs []need `json:"needs"`

	records []*v1alpha1.Interruption
}

// underWay counts what is under way.
type underWay struct {
	Interruptions       int                    `json:"interruptions"`
	Phases              map[v1alpha1.Phase]int `json:"phases"`
	NearestDeadline     *v1alpha1.Deadline     `json:"nearestDeadline,omitempty"`
	PodsWaiting         int                    `json:"podsWaiting"`
	PodsLeaving         int                    `json:"podsLeaving"`
	ReplacementsPending int                    `json:"replacementsPending"`
	HooksRunning        int                    `json:"hooksRunning"`
}

// need is something that waits for a person.
type need struct {
	Interruption string     `json:"interruption,omitempty"`
	Node         string     `json:"node,omitempty"`
	Why          string     `json:"why"`
	Since        *time.Time `json:"since,omitempty"`
	Command      string     `json:"command"`
}

func (s *session) status(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	r, err := s.readStatus(ctx, c)
	if err != nil {
		return err
	}
	if s.isJSON() {
		err = s.writeJSON(r)
	} else {
		r.write(s)
	}
	switch {
	case err != nil:
		return err
	case finding.Has(r.Problems, finding.Broken):
		return exitError{Code: exitBroken}
	case len(r.Needs) > 0:
		return exitError{Code: exitNeedsPerson}
	}
	return nil
}

// readStatus reads the installation and the interruptions.
func (s *session) readStatus(ctx context.Context, c cluster) (*statusReport, error) {
	d := &doctorRun{session: s, kube: &c, progress: terminal.NewProgress(s.err)}
	d.readInstallation(ctx)
	d.progress.Stop()
	now := s.now()
	r := &statusReport{
		Cluster: c.name, Health: d.lifeboat.Summary(now), Problems: d.lifeboat.Findings("", now),
		UnderWay: underWay{Phases: map[v1alpha1.Phase]int{}}, Needs: []need{},
	}
	if r.Problems == nil {
		r.Problems = []finding.Finding{}
	}
	var all v1alpha1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); command.IsNotInstalled(err) {
		return r, nil // a finding says so
	} else if err != nil {
		return nil, err
	}
	r.add(all.Items, s.name, now)
	return r, nil
}

// add adds the interruptions.
func (r *statusReport) add(all []v1alpha1.Interruption, program string, now time.Time) {
	sum := record.Summarize(all, func(*v1alpha1.Interruption) string { return "" }, now)
	for g, n := range sum.Groups {
		r.UnderWay.Interruptions += n
		r.UnderWay.Phases[g.Phase] += n
	}
	r.UnderWay.PodsWaiting, r.UnderWay.PodsLeaving = sum.PodsWaiting, sum.PodsLeaving
	r.UnderWay.ReplacementsPending, r.UnderWay.HooksRunning = sum.ReplacementsPending, sum.HooksRunning
	for _, typ := range []v1alpha1.DeadlineType{v1alpha1.DeadlineHard, v1alpha1.DeadlineEstimated, v1alpha1.DeadlineSoft} {
		if at, found := sum.NearestDeadlines[typ]; found {
			r.UnderWay.NearestDeadline = notice.At(at, typ)
			break
		}
	}
	for i := range all {
		in := &all[i]
		if degraded, ok := wiringNeed(in, program, now); ok {
			r.Needs = append(r.Needs, degraded)
		}
		if !notice.Finished(in) {
			r.records = append(r.records, in)
			r.Needs = append(r.Needs, needsOf(in, program, now)...)
		}
	}
	slices.SortStableFunc(r.Needs, func(a, b need) int {
		if a.Since == nil || b.Since == nil {
			return 0
		}
		return a.Since.Compare(*b.Since)
	})
}

// needsOf returns what an interruption needs from a person.
func needsOf(in *v1alpha1.Interruption, program string, now time.Time) []need {
	var all []need
	add := func(since time.Time, why, format string) {
		n := need{Interruption: in.Name, Node: nodeOf(in), Why: why, Command: fmt.Sprintf(format, nodeOf(in))}
		if !since.IsZero() {
			at := since.UTC()
			n.Since = &at
		}
		all = append(all, n)
	}
	if since, awaits := record.AwaitsApproval(in); awaits {
		add(since, "waits for an approval: "+decisionOf(in), program+" approve %s")
	}
	if hold := record.Hold(in, now); hold != nil {
		add(hold.Time.Time, record.HoldGate(hold).Why, program+" release %s")
	}
	if c := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionCorroborated); c != nil && c.Status != "True" {
		add(c.LastTransitionTime.Time, c.Message, program+" explain %s")
	}
	for i := range record.Drain(&in.Status).Hooks {
		h := &record.Drain(&in.Status).Hooks[i]
		if h.State == v1alpha1.HookFailed && h.CompletionTime != nil && record.GoAhead(in, now).Before(h.CompletionTime.Time) {
			add(h.CompletionTime.Time, fmt.Sprintf("hook %s failed: %s", h.Name, h.Message), program+" explain %s")
		}
	}
	if in.Status.Kind == notice.KindRequested && in.Status.Phase == v1alpha1.PhaseDrained {
		add(time.Time{}, "is drained, as a person requested", program+" uncordon %s")
	}
	return all
}

// degradedFor is for how long status shows that the queue did not deliver a notice.
const degradedFor = 24 * time.Hour

// wiringNeed returns that the queue did not deliver a notice about the interruption.
func wiringNeed(in *v1alpha1.Interruption, program string, now time.Time) (need, bool) {
	c := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionWiringDegraded)
	if c == nil || c.Status != "True" || now.Sub(c.LastTransitionTime.Time) > degradedFor {
		return need{}, false
	}
	at := c.LastTransitionTime.UTC()
	return need{Interruption: in.Name, Node: nodeOf(in), Why: c.Message, Since: &at, Command: program + " doctor --probe"}, true
}

func decisionOf(in *v1alpha1.Interruption) string {
	if in.Status.Decision == nil {
		return ""
	}
	return string(in.Status.Decision.Action) + " for " + in.Status.Kind
}

// write writes the report for people.
func (r *statusReport) write(s *session) {
	if r.Cluster != "" {
		s.out.Fact(factIndent, "cluster", terminal.Bold, r.Cluster)
	}
	s.out.Fact(factIndent, "health", terminal.Plain, r.Health)
	for _, p := range r.Problems {
		style := terminal.Warn
		if p.Severity == finding.Broken {
			style = terminal.Bad
		}
		s.out.Fact(factIndent, string(p.Severity), style, p.Object+": "+p.Problem)
		s.out.Fact(factIndent, "", terminal.Plain, p.Fix)
	}
	s.out.Fact(factIndent, "under way", terminal.Plain, r.UnderWay.sentence(s.now()))
	if len(r.records) > 0 {
		s.out.Printf("\n")
		s.out.Printf("%s", drawTable(s.out.Measured(), r.records, "", s.now()))
	}
	if len(r.Needs) == 0 {
		s.out.Printf("\nNothing waits for a person.\n")
		return
	}
	s.out.Printf("\n%s\n", s.out.Paint(terminal.Bold, "Waits for a person:"))
	for _, n := range r.Needs {
		line := n.Node + " " + n.Why
		if n.Since != nil {
			line += fmt.Sprintf(" (for %s)", terminal.Duration(s.now().Sub(*n.Since)))
		}
		s.out.Printf("- %s\n    %s\n", line, s.out.Paint(terminal.Bold, n.Command))
	}
}

// sentence describes what is under way.
func (u underWay) sentence(now time.Time) string {
	if u.Interruptions == 0 {
		return "no interruption"
	}
	text := counted(u.Interruptions, "interruption")
	if d := u.NearestDeadline; d != nil {
		text += fmt.Sprintf(", the nearest deadline %s (%s)", terminal.Relative(d.Time.Time, now), d.Type)
	}
	text += fmt.Sprintf("; %s to evict, %d leaving", counted(u.PodsWaiting, "pod"), u.PodsLeaving)
	if u.ReplacementsPending > 0 {
		text += "; " + counted(u.ReplacementsPending, "replacement") + " without an instance"
	}
	if u.HooksRunning > 0 {
		text += "; " + counted(u.HooksRunning, "hook") + " running"
	}
	return text
}
