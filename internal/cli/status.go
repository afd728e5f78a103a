package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// exitNeedsPerson is the exit code of status when something waits for a person.
const exitNeedsPerson = 3

func newStatus(s *session) *cobra.Command {
	var fleet fleetFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show health, what is under way and what waits for a person",
		Long: `Show on one screen whether Lifeboat runs, which interruptions are under way, and
what waits for a person. Each of those has a deadline or the command to run.

It reads the cluster only. lifeboat doctor also checks the AWS resources.
With --contexts or --all-contexts it shows one line for each cluster.

Exit codes: 0 nothing to do; 1 Lifeboat does not run as it should, or a cluster
of several cannot be read; 3 something waits for a person.`,
		Example: `  lifeboat status
  lifeboat status --contexts prod-eu,prod-us
  lifeboat status -o json | jq -r '.needs[].command'`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fleet.given() {
				return s.fleetStatus(cmd.Context(), fleet)
			}
			return s.status(cmd.Context())
		},
	}
	cmd.Flags().StringSliceVar(&fleet.contexts, "contexts", nil, "contexts in the kubeconfig, separated by commas")
	cmd.Flags().BoolVar(&fleet.all, "all-contexts", false, "all contexts in the kubeconfig")
	return cmd
}

// statusReport is what status shows.
type statusReport struct {
	Cluster string `json:"cluster,omitempty"`
	// Health is one sentence about the installation, and Problems what is wrong with it.
	Health   string            `json:"health"`
	Problems []finding.Finding `json:"problems"`
	UnderWay underWay          `json:"underWay"`
	// Paused lists the pauses that are in force.
	Paused []string `json:"paused,omitempty"`
	// Needs lists what waits for a person.
	Needs []record.Need `json:"needs"`

	records []*v1beta1.Interruption
}

// underWay counts what is under way.
type underWay struct {
	Interruptions       int                   `json:"interruptions"`
	Phases              map[v1beta1.Phase]int `json:"phases"`
	NearestDeadline     *v1beta1.Deadline     `json:"nearestDeadline,omitempty"`
	PodsWaiting         int                   `json:"podsWaiting"`
	PodsLeaving         int                   `json:"podsLeaving"`
	ReplacementsPending int                   `json:"replacementsPending"`
	HooksRunning        int                   `json:"hooksRunning"`
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
	progress := terminal.NewProgress(s.err)
	d := &doctorRun{session: s, kube: &c, progress: progress}
	r := &statusReport{Cluster: c.name, UnderWay: underWay{Phases: map[v1beta1.Phase]int{}}, Needs: []record.Need{}}
	r.Health, r.Problems = d.readHealth(ctx)
	progress.Stop()
	now := s.now()
	var all v1beta1.InterruptionList
	if err := c.list(ctx, "interruptions", &all); command.IsNotInstalled(err) {
		return r, nil // a finding says so
	} else if err != nil {
		return nil, err
	}
	pauses, err := c.pauses(ctx)
	if err != nil {
		return nil, err
	}
	r.Needs = record.PauseNeeds(pauses, s.name, now)
	for _, n := range r.Needs {
		r.Paused = append(r.Paused, n.Why)
	}
	r.add(all.Items, s.name, now)
	return r, nil
}

// readHealth returns one sentence about the installation, and what is wrong with it.
func (d *doctorRun) readHealth(ctx context.Context) (string, []finding.Finding) {
	d.readInstallation(ctx)
	now := d.now()
	return d.lifeboat.Summary(now), append([]finding.Finding{}, d.lifeboat.Findings("", now)...)
}

// add adds the interruptions.
func (r *statusReport) add(all []v1beta1.Interruption, program string, now time.Time) {
	sum := record.Summarize(all, func(*v1beta1.Interruption) string { return "" }, now)
	for g, n := range sum.Groups {
		r.UnderWay.Interruptions += n
		r.UnderWay.Phases[g.Phase] += n
	}
	r.UnderWay.PodsWaiting, r.UnderWay.PodsLeaving = sum.PodsWaiting, sum.PodsLeaving
	r.UnderWay.ReplacementsPending, r.UnderWay.HooksRunning = sum.ReplacementsPending, sum.HooksRunning
	for _, typ := range []v1beta1.DeadlineType{v1beta1.DeadlineHard, v1beta1.DeadlineEstimated, v1beta1.DeadlineSoft} {
		if at, found := sum.NearestDeadlines[typ]; found {
			r.UnderWay.NearestDeadline = notice.At(at, typ)
			break
		}
	}
	for i := range all {
		in := &all[i]
		r.Needs = append(r.Needs, record.Needs(in, program, now)...)
		if !notice.Finished(in) {
			r.records = append(r.records, in)
		}
	}
	record.SortNeeds(r.Needs)
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
	for _, why := range r.Paused {
		s.out.Fact(factIndent, "paused", terminal.Warn, why)
	}
	s.out.Fact(factIndent, "under way", terminal.Plain, r.UnderWay.sentence(s.now()))
	if len(r.records) > 0 {
		s.out.Printf("\n")
		s.out.Printf("%s", drawTable(s.out.Measured(), r.records, "", s.now()))
	}
	s.writeNeeds(r.Needs)
}

// writeNeeds writes what waits for a person.
func (s *session) writeNeeds(needs []record.Need) {
	if len(needs) == 0 {
		s.out.Printf("\nNothing waits for a person.\n")
		return
	}
	s.out.Printf("\n%s\n", s.out.Paint(terminal.Bold, "Waits for a person:"))
	for _, n := range needs {
		line := strings.TrimSpace(n.Node + " " + n.Why)
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
