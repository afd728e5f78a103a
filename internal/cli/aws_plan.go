package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// ExitChanges is the exit code of `lifeboat aws plan` if there are changes to
// make.
const ExitChanges = 3

func newAWSPlan(s *session) *cobra.Command {
	var f awsFlags
	cmd := &cobra.Command{
		Use:   "plan --cluster NAME",
		Short: "Show what lifeboat aws setup would change",
		Long: `Show what lifeboat aws setup would change. The command changes nothing.

Exit codes: 0 no changes; 3 there are changes to make; 1 the resources could not be
read, or one of their names belongs to a resource that lifeboat aws did not create.

SQS shows a change of a queue only after up to one minute: a plan right after a
setup may still show the old state.`,
		Example: `  lifeboat aws plan --cluster prod --region eu-west-1

  # Fail in a pipeline if the resources have drifted
  lifeboat aws plan --cluster prod -o json`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given(cmd)
			if err := f.check(); err != nil {
				return err
			}
			return s.awsPlan(cmd.Context(), f)
		},
	}
	f.add(cmd)
	f.addGroups(cmd)
	f.addFewRules(cmd)
	f.addTopic(cmd, keptTopic)
	f.addSenders(cmd)
	cmd.Flags().BoolVar(&f.adopt, "adopt", false, "plan to take over resources with the same names that lifeboat aws did not create")
	return cmd
}

func (s *session) awsPlan(ctx context.Context, f awsFlags) error {
	w, err := s.connectSetup(ctx, f)
	if err != nil {
		return err
	}
	plan, hooks, err := s.planSetup(ctx, w, f)
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
	switch err := missingGroupsError(hooks); {
	case len(plan.Conflicts) > 0:
		return conflictError(plan)
	case err != nil:
		return err
	case plan.Empty() && hookSteps(hooks) == 0:
		return nil
	}
	if !s.isJSON() {
		s.out.Printf("\nRun `%s aws setup --cluster %s%s` to make these changes.\n", s.name, f.cluster, f.repeated())
	}
	return exitError{Code: ExitChanges}
}

// repeated are the flags of plan that setup needs too.
func (f *awsFlags) repeated() string {
	also := ""
	if f.groups != "" {
		also += " --groups " + strings.ReplaceAll(f.groups, " ", "")
	}
	if f.fewGiven {
		also += fmt.Sprintf(" --few-rules=%t", f.fewRules)
	}
	if f.topicGiven {
		also += " --shared-topic=" + f.topic
	}
	if f.adopt {
		also += " --adopt"
	}
	for _, arn := range f.senders {
		also += " --sender '" + arn + "'" // it may have asterisks
	}
	if f.region != "" {
		also += " --region " + f.region
	}
	return also
}

// planSetup plans the changes to the queue and the rules and to the hooks of the selected
// groups.
func (s *session) planSetup(ctx context.Context, w setupClients, f awsFlags) (awssetup.Plan, []plannedHooks, error) {
	w.wanted.Topic = f.topic
	observed, err := w.observe(ctx)
	if err != nil {
		return awssetup.Plan{}, nil, err
	}
	if err := f.oneTopic(observed); err != nil {
		return awssetup.Plan{}, nil, err
	}
	groups, err := s.selectedGroups(ctx, f)
	if err != nil {
		return awssetup.Plan{}, nil, err
	}
	if f.groups == "" {
		groups = s.groupsOfRules(ctx, f, observed)
	}
	var note string
	if f.sharedTopic(observed) == "" { // rules of a topic match all groups
		if w.wanted, note, err = limitTo(w.wanted, groups); err != nil {
			return awssetup.Plan{}, nil, err
		}
	}
	w.wanted.Senders = f.senders
	if w.wanted, err = f.inForm(w.wanted, observed); err != nil {
		return awssetup.Plan{}, nil, err
	}
	plan, err := awssetup.Diff(w.wanted, observed, awssetup.Options{Adopt: f.adopt})
	if err != nil {
		return awssetup.Plan{}, nil, err
	}
	if note != "" {
		plan.Notes = append(plan.Notes, note)
	}
	hooks, err := w.planHooks(ctx, s, groups)
	if f.groups != "" {
		return plan, hooks, err
	}
	if err != nil {
		plan.Notes = append(plan.Notes, fmt.Sprintf("The lifecycle hooks of the groups in the rules were not checked: %v.", err))
	}
	return plan, slices.DeleteFunc(hooks, isMissing), nil // a group in a rule can be deleted
}

// keptTopic says what plan and setup do without --shared-topic.
const keptTopic = "default: plan and setup keep the topic that they find; --shared-topic= gives the cluster rules of its own"

// oneTopic rejects a change from one topic to another: the cluster would not leave the first.
func (f *awsFlags) oneTopic(o awssetup.Observed) error {
	if now := o.Queue.Tags[awssetup.TagTopic]; f.topic != "" && now != "" && now != f.topic {
		return usageErrorf("the cluster shares the topic %s: leave it first, with lifeboat aws setup --cluster %s --shared-topic=", now, f.cluster)
	}
	return nil
}

// conflictError returns the error of a plan with conflicts.
func conflictError(p awssetup.Plan) error {
	names := make([]string, 0, len(p.Conflicts))
	for _, c := range p.Conflicts {
		names = append(names, string(c.Kind)+" "+c.Name)
	}
	return awsError{fmt.Errorf("%w: %s", awssetup.ErrConflicts, strings.Join(names, ", "))}
}

// plannedSetup is the output of `aws plan` and `aws setup`.
type plannedSetup struct {
	Cluster   string              `json:"cluster"`
	Account   string              `json:"account"`
	Region    string              `json:"region"`
	Changes   []awssetup.Change   `json:"changes"`
	Conflicts []awssetup.Conflict `json:"conflicts,omitempty"`
	Notes     []string            `json:"notes,omitempty"`
	// Hooks holds the planned changes to the hooks of Auto Scaling groups.
	Hooks []plannedHooks `json:"hooks,omitempty"`
	// Applied is the result of `aws setup`.
	Applied *awssetup.Applied `json:"applied,omitempty"`
}

func reportPlan(p awssetup.Plan, hooks []plannedHooks) plannedSetup {
	return plannedSetup{
		Cluster: p.Wiring.Cluster, Account: p.Wiring.Account, Region: p.Wiring.Region,
		Changes: p.Changes, Conflicts: p.Conflicts, Notes: p.Notes, Hooks: hooks,
	}
}

// showPlan prints a plan for people.
func (s *session) showPlan(p awssetup.Plan, hooks []plannedHooks) {
	s.out.Printf("%s\n", s.out.Paint(terminal.Bold, fmt.Sprintf("AWS resources of cluster %s in account %s, region %s", p.Wiring.Cluster, p.Wiring.Account, p.Wiring.Region)))
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
		s.out.Printf("    %s\n", c.Resolution)
	}
	if len(p.Notes) > 0 {
		s.out.Printf("\n")
	}
	for _, n := range p.Notes {
		s.out.Printf("%s\n", s.out.Paint(terminal.Dim, n))
	}
	s.showHooks(hooks)
	if p.Empty() && hookSteps(hooks) == 0 {
		s.out.Printf("\nNo changes are needed.\n")
		return
	}
	s.out.Printf("\n%d to create, %d to change, %d to delete", p.Count(awssetup.Create), p.Count(awssetup.Update), p.Count(awssetup.Delete))
	if n := hookSteps(hooks); n > 0 {
		s.out.Printf(", and %s to change", counted(n, "hook"))
	}
	if n := len(p.Conflicts); n > 0 {
		s.out.Printf(", %d in conflict", n)
	}
	s.out.Printf(".\n")
}

func (s *session) showChange(p awssetup.Plan, c awssetup.Change) {
	sign, style := "+", terminal.Good
	switch c.Action {
	case awssetup.Update:
		sign, style = "~", terminal.Warn
	case awssetup.Delete:
		sign, style = "-", terminal.Bad
	}
	reason := c.Reason
	for _, r := range p.Wiring.Rules {
		if r.Name == c.Name && r.Optional() && c.Action == awssetup.Create {
			reason += "; it needs " + r.Needs + ", and matches nothing without it"
		}
	}
	s.out.Printf("%s %s %s", s.out.Paint(style, sign), c.Kind, s.out.Paint(terminal.Bold, c.Name))
	if reason != "" {
		s.out.Printf("  %s", s.out.Paint(terminal.Dim, reason))
	}
	s.out.Printf("\n")
	for _, f := range c.Fields {
		if c.Action == awssetup.Create {
			s.showNew(p.Wiring, c.Kind, f)
		} else {
			s.showField(f)
		}
	}
}

// showNew prints a field of a new resource. It omits fields that are obvious;
// -o json has them.
func (s *session) showNew(w awssetup.Wiring, kind awssetup.ObjectKind, f awssetup.Field) {
	switch {
	case f.WillBe == "", f.Name == "Description", f.Name == "State", f.Name == "Target.DeadLetterConfig.Arn", strings.HasPrefix(f.Name, "Tag "):
		return
	case f.Name == "Policy" && kind == awssetup.TopicObject:
		s.out.Printf("    %s  only EventBridge may publish\n", f.Name)
		return
	case f.Name == "Policy" && w.Topic != "":
		s.out.Printf("    %s  only the topic %s may send\n", f.Name, w.Topic)
		return
	case f.Name == "Policy":
		s.out.Printf("    %s  only the %d rules of this cluster may send\n", f.Name, len(w.Rules))
		return
	}
	s.out.Printf("    %s  %s\n", f.Name, withUnit(f.Name, f.WillBe))
}

// showField prints the old and the new value of a field, on one line if they
// fit.
func (s *session) showField(f awssetup.Field) {
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

// withUnit formats a value with its unit.
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
