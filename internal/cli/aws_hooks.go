package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// plannedHooks holds the planned changes to the hooks of one group, and other
// findings about it.
type plannedHooks struct {
	Group    string            `json:"group"`
	Steps    []nodegroup.Step  `json:"steps"`
	Held     []string          `json:"held,omitempty"`
	Findings []finding.Finding `json:"findings,omitempty"`

	wanted nodegroup.Wanted
}

// errHooks: a plan for hooks cannot be applied.
var errHooks = errors.New("the lifecycle hooks cannot be created")

// errHeld: a hook cannot be deleted now.
var errHeld = errors.New("the hooks cannot be deleted while an instance is launching or terminating: wait until it has finished, and run the command again")

// planHooks plans the changes that the hooks of groups need. It never creates
// or changes a group.
func (w setupClients) planHooks(ctx context.Context, s *session, groups []nodegroup.Wanted) ([]plannedHooks, error) {
	progress := terminal.NewProgress(s.err)
	defer progress.Stop()
	var all []plannedHooks
	for i, g := range groups {
		progress.Step("reading the hooks of Auto Scaling groups: %d of %d", i, len(groups))
		g.Management = v1beta1.ManageHooks
		o, err := w.groups.Observe(ctx, g.Group, s.now())
		if err != nil {
			return nil, awsError{err}
		}
		p := nodegroup.Diff(g, o, nodegroup.History{Unhooked: nodegroup.Unhooked(nil, o)})
		all = append(all, plannedHooks{Group: g.Group, Steps: p.Steps, Held: p.Held, Findings: remainingFindings(p), wanted: g})
	}
	return all, nil
}

// remainingFindings returns the findings that the steps of the plan do not fix and that
// are about the queue and the rules.
func remainingFindings(p nodegroup.Plan) []finding.Finding {
	var all []finding.Finding
	for _, f := range p.Findings {
		fixed := strings.HasPrefix(f.ID, "launch-hook-") || strings.HasPrefix(f.ID, "terminate-hook-") || f.ID == "pool-without-hook"
		if f.ID == "differs" || fixed && len(p.Steps) > 0 {
			continue
		}
		all = append(all, f)
	}
	return all
}

// planUnhook plans the deletion of Lifeboat's hooks from groups. It keeps hooks
// with other names.
func (w setupClients) planUnhook(ctx context.Context, s *session, groups []nodegroup.Wanted) ([]plannedHooks, error) {
	var all []plannedHooks
	for _, g := range groups {
		o, err := w.groups.Observe(ctx, g.Group, s.now())
		if err != nil {
			return nil, awsError{err}
		}
		p := plannedHooks{Group: g.Group, Steps: []nodegroup.Step{}, wanted: g}
		for _, h := range o.Hooks {
			if h.Name != v1beta1.LaunchHook && h.Name != v1beta1.TerminateHook {
				continue
			}
			if err := nodegroup.Removable(o, h); err != nil {
				p.Held = append(p.Held, err.Error())
				continue
			}
			p.Steps = append(p.Steps, nodegroup.Step{Verb: nodegroup.DeleteHook, Object: h.Name, Reason: "no instance is launching or terminating"})
		}
		all = append(all, p)
	}
	return all, nil
}

// hookSteps counts the steps of all plans.
func hookSteps(all []plannedHooks) int {
	n := 0
	for _, p := range all {
		n += len(p.Steps)
	}
	return n
}

// missingGroupsError returns an error if a selected group does not exist.
func missingGroupsError(all []plannedHooks) error {
	var missing []string
	for _, p := range all {
		if isMissing(p) {
			missing = append(missing, p.Group)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: Auto Scaling group %s does not exist in this account and region: check the name; to let Lifeboat create the group, declare a NodeGroup with management All", errHooks, strings.Join(missing, ", "))
}

func isMissing(p plannedHooks) bool {
	return slices.ContainsFunc(p.Findings, func(f finding.Finding) bool { return f.ID == "group-missing" })
}

// heldHooksError returns an error if a hook cannot be deleted now.
func heldHooksError(all []plannedHooks) error {
	var held []string
	for _, p := range all {
		if len(p.Held) > 0 {
			held = append(held, p.Group)
		}
	}
	if len(held) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(held, ", "), errHeld)
}

// showHooks prints plans for people.
func (s *session) showHooks(all []plannedHooks) {
	for _, p := range all {
		if len(p.Steps)+len(p.Held)+len(p.Findings) == 0 {
			continue
		}
		s.out.Printf("\n%s\n", s.out.Paint(terminal.Bold, "Auto Scaling group "+p.Group))
		for _, step := range p.Steps {
			s.showStep(step)
		}
		for _, held := range p.Held {
			s.out.Printf("%s %s\n", s.out.Paint(terminal.Bad, "!"), held)
		}
		for _, f := range p.Findings {
			s.out.Printf("%s %s\n    %s\n", s.out.Paint(terminal.Warn, "!"), f.Problem, s.out.Paint(terminal.Dim, f.Fix))
		}
	}
}

func (s *session) showStep(step nodegroup.Step) {
	sign, style := "+", terminal.Good
	switch {
	case step.Verb == nodegroup.DeleteHook:
		sign, style = "-", terminal.Bad
	case slices.ContainsFunc(step.Changes, func(c nodegroup.Change) bool { return c.Was != "" }):
		sign, style = "~", terminal.Warn
	}
	s.out.Printf("%s hook %s  %s\n", s.out.Paint(style, sign), s.out.Paint(terminal.Bold, step.Object), s.out.Paint(terminal.Dim, step.Reason))
	for _, c := range step.Changes {
		if c.Was == "" {
			s.out.Printf("    %s  %s\n", c.Name, c.WillBe)
		} else {
			s.out.Printf("    %s  %s → %s\n", c.Name, c.Was, c.WillBe)
		}
	}
}

// applyHooks applies the steps of plans and prints each. Apply reads the
// group again before it deletes a hook.
func (s *session) applyHooks(ctx context.Context, w setupClients, all []plannedHooks) error {
	for _, p := range all {
		for _, step := range p.Steps {
			if err := w.groups.Apply(ctx, p.wanted, step); err != nil {
				return awsError{fmt.Errorf("hooks of Auto Scaling group %s: %w (run it again to continue)", p.Group, err)}
			}
			if s.isJSON() {
				continue
			}
			done := "created or updated"
			if step.Verb == nodegroup.DeleteHook {
				done = "deleted"
			}
			s.out.Printf("%s hook %s of Auto Scaling group %s\n", s.out.Paint(terminal.Good, done), step.Object, p.Group)
		}
	}
	return nil
}

// launchWarning returns a warning for the confirmation: from now on, launches wait for
// an answer.
func launchWarning(all []plannedHooks) string {
	var groups []string
	for _, p := range all {
		if slices.ContainsFunc(p.Steps, func(step nodegroup.Step) bool {
			was := slices.ContainsFunc(step.Changes, func(c nodegroup.Change) bool { return c.Was != "" })
			return step.Verb == nodegroup.PutHook && step.Object == p.wanted.Launch.Name && !was
		}) {
			groups = append(groups, p.Group)
		}
	}
	if len(groups) == 0 {
		return ""
	}
	return " From then on each launch of " + strings.Join(groups, ", ") + " waits until Lifeboat answers its hook, and is abandoned without an answer: " +
		"lifeboatd must run and have the permission autoscaling:CompleteLifecycleAction."
}
