package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// ExitChanges is the exit code of `lifeboat wire plan` where there is something
// to change.
const ExitChanges = 3

func newWirePlan(s *session) *cobra.Command {
	var f wireFlags
	cmd := &cobra.Command{
		Use:   "plan --cluster NAME",
		Short: "Show what lifeboat wire apply would change",
		Long: `Show what lifeboat wire apply would change. Nothing is touched.

Exit codes: 0 there is nothing to change; 3 there is; 1 it could not be found
out, or something is in the way that lifeboat wire did not make.

SQS shows a change of a queue only after up to a minute: a plan right after an
apply may still show the past.`,
		Example: `  lifeboat wire plan --cluster prod --region eu-west-1

  # In a pipeline: fail if the wiring has drifted
  lifeboat wire plan --cluster prod -o json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return s.wirePlan(cmd.Context(), f)
		},
	}
	f.add(cmd)
	f.addGroups(cmd)
	cmd.Flags().BoolVar(&f.adopt, "adopt", false, "plan to take over what has the names of the wiring but was not made by lifeboat wire")
	return cmd
}

func (s *session) wirePlan(ctx context.Context, f wireFlags) error {
	w, err := s.connectWiring(ctx, f)
	if err != nil {
		return err
	}
	plan, hooks, err := s.planWiring(ctx, w, f)
	if err != nil {
		return err
	}
	if s.isJSON() {
		if err := s.writeJSON(reportPlan(plan, hooks)); err != nil {
			return err
		}
	} else {
		s.showPlan(plan, hooks)
	}
	switch err := hooksMissed(hooks); {
	case len(plan.Conflicts) > 0:
		return conflictError(plan)
	case err != nil:
		return err
	case plan.Empty() && hookSteps(hooks) == 0:
		return nil
	}
	if !s.isJSON() {
		also := ""
		if f.groups != "" {
			also += " --groups " + strings.ReplaceAll(f.groups, " ", "")
		}
		if f.adopt {
			also += " --adopt"
		}
		s.out.Printf("\n`%s wire apply --cluster %s%s` does it.\n", s.name, f.cluster, also)
	}
	return exitError{Code: ExitChanges}
}

// planWiring is what has to be done to make the wiring, and the hooks of the groups
// that are meant, as wanted.
func (s *session) planWiring(ctx context.Context, w wired, f wireFlags) (wiring.Plan, []plannedHooks, error) {
	groups, err := s.groupsMeant(ctx, f)
	if err != nil {
		return wiring.Plan{}, nil, err
	}
	if w.wanted, err = limitTo(w.wanted, groups); err != nil {
		return wiring.Plan{}, nil, err
	}
	plan, err := w.plan(ctx, f)
	if err != nil {
		return wiring.Plan{}, nil, err
	}
	hooks, err := w.planHooks(ctx, s, groups)
	return plan, hooks, err
}

// plan is what has to be done to make the wiring as wanted.
func (w wired) plan(ctx context.Context, f wireFlags) (wiring.Plan, error) {
	observed, err := w.observe(ctx)
	if err != nil {
		return wiring.Plan{}, err
	}
	wanted, err := asWritten(w.wanted, f, observed)
	if err != nil {
		return wiring.Plan{}, err
	}
	return wiring.Diff(wanted, observed, wiring.Options{Adopt: f.adopt})
}

// conflictError says that a plan cannot be carried out.
func conflictError(p wiring.Plan) error {
	names := make([]string, 0, len(p.Conflicts))
	for _, c := range p.Conflicts {
		names = append(names, string(c.Kind)+" "+c.Name)
	}
	return awsError{fmt.Errorf("%w: %s", wiring.ErrConflicts, strings.Join(names, ", "))}
}

// plannedWiring is a plan as it is reported.
type plannedWiring struct {
	Cluster   string            `json:"cluster"`
	Account   string            `json:"account"`
	Region    string            `json:"region"`
	Changes   []wiring.Change   `json:"changes"`
	Conflicts []wiring.Conflict `json:"conflicts,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
	// Hooks is what is to be done to the hooks of Auto Scaling groups.
	Hooks []plannedHooks `json:"hooks,omitempty"`
	// Applied is what it came to, once it is done.
	Applied *wiring.Applied `json:"applied,omitempty"`
}

func reportPlan(p wiring.Plan, hooks []plannedHooks) plannedWiring {
	return plannedWiring{
		Cluster: p.Wiring.Cluster, Account: p.Wiring.Account, Region: p.Wiring.Region,
		Changes: p.Changes, Conflicts: p.Conflicts, Notes: p.Notes, Hooks: hooks,
	}
}

// showPlan writes a plan for people.
func (s *session) showPlan(p wiring.Plan, hooks []plannedHooks) {
	s.out.Printf("%s\n", s.out.Paint(terminal.Bold, fmt.Sprintf("Wiring of cluster %s in account %s, region %s", p.Wiring.Cluster, p.Wiring.Account, p.Wiring.Region)))
	for i, c := range p.Changes {
		if i == 0 || len(c.Fields) > 0 {
			s.out.Printf("\n")
		}
		s.showChange(p, c)
	}
	for _, c := range p.Conflicts {
		s.out.Printf("\n%s %s %s: %s\n", s.out.Paint(terminal.Bad, "!"), c.Kind, s.out.Paint(terminal.Bold, c.Name), c.Reason)
		for _, f := range c.Fields {
			s.showField(f)
		}
		s.out.Printf("    %s\n", c.WayOut)
	}
	if len(p.Notes) > 0 {
		s.out.Printf("\n")
	}
	for _, n := range p.Notes {
		s.out.Printf("%s\n", s.out.Paint(terminal.Dim, n))
	}
	s.showHooks(hooks)
	if p.Empty() && hookSteps(hooks) == 0 {
		s.out.Printf("\nThere is nothing to change.\n")
		return
	}
	s.out.Printf("\n%d to create, %d to change, %d to delete", p.Count(wiring.Create), p.Count(wiring.Update), p.Count(wiring.Delete))
	if n := hookSteps(hooks); n > 0 {
		s.out.Printf(", besides %s", counted(n, "hook"))
	}
	if n := len(p.Conflicts); n > 0 {
		s.out.Printf(", %d in the way", n)
	}
	s.out.Printf(".\n")
}

func (s *session) showChange(p wiring.Plan, c wiring.Change) {
	sign, style := "+", terminal.Good
	switch c.Action {
	case wiring.Update:
		sign, style = "~", terminal.Warn
	case wiring.Delete:
		sign, style = "-", terminal.Bad
	}
	reason := c.Reason
	for _, r := range p.Wiring.Rules {
		if r.Name == c.Name && r.Optional() && c.Action == wiring.Create {
			reason += "; it needs " + r.Needs + ", and is silent without"
		}
	}
	s.out.Printf("%s %s %s", s.out.Paint(style, sign), c.Kind, s.out.Paint(terminal.Bold, c.Name))
	if reason != "" {
		s.out.Printf("  %s", s.out.Paint(terminal.Dim, reason))
	}
	s.out.Printf("\n")
	for _, f := range c.Fields {
		if c.Action == wiring.Create {
			s.showNew(f, len(p.Wiring.Rules))
		} else {
			s.showField(f)
		}
	}
}

// showNew shows a field of what is new. What goes without saying is left to
// -o json.
func (s *session) showNew(f wiring.Field, rules int) {
	switch {
	case f.WillBe == "", f.Name == "Description", f.Name == "State", f.Name == "Target.DeadLetterConfig.Arn", strings.HasPrefix(f.Name, "Tag "):
		return
	case f.Name == "Policy":
		s.out.Printf("    %s  the %d rules of this wiring may send, and nobody else\n", f.Name, rules)
		return
	}
	s.out.Printf("    %s  %s\n", f.Name, withUnit(f.Name, f.WillBe))
}

// showField shows what a field was and will be: side by side where there is room.
func (s *session) showField(f wiring.Field) {
	was, willBe := withUnit(f.Name, f.Was), withUnit(f.Name, f.WillBe)
	const room = 40
	if utf8.RuneCountInString(was) <= room && utf8.RuneCountInString(willBe) <= room {
		s.out.Printf("    %s  %s → %s\n", f.Name, was, willBe)
	} else {
		s.out.Printf("    %s\n      %s %s\n      %s %s\n", f.Name, s.out.Paint(terminal.Bad, "-"), was, s.out.Paint(terminal.Good, "+"), willBe)
	}
	if f.Reason != "" {
		s.out.Printf("      %s\n", s.out.Paint(terminal.Dim, f.Reason))
	}
}

// withUnit is a value as people read it.
func withUnit(name, value string) string {
	switch {
	case value == "":
		return "none"
	case !strings.HasSuffix(name, "Seconds") && !strings.HasSuffix(name, "Period") && !strings.HasSuffix(name, "Timeout"):
		return value
	}
	const day = 24 * 60 * 60
	if n, err := strconv.Atoi(value); err == nil && n > day && n%day == 0 {
		return fmt.Sprintf("%s s (%d days)", value, n/day)
	}
	return value + " s"
}
