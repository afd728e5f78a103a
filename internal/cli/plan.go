package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/forecast"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const planHelp = `Show what would happen to each pod of a node if it were interrupted now: when
the pod is asked to stop, how long it gets, and why. A node that has an
interruption already is shown with that one, unless --kind is given.

It is worked out by the code that the controller itself runs, played forward in
time and assuming that every pod uses its whole grace period, that a pod which
leaves is replaced by one that is ready after --replaced-in, and that a hook
before the drain takes its whole timeout. Where a person has to agree first, it
assumes that somebody does now.

Exit code 3 says that some pod cannot leave with its whole grace period before
the deadline.`

type planFlags struct {
	supposition
	replacedIn, margin time.Duration
}

func newPlan(s *session) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan NODE|INSTANCE",
		Short: "Show what an interruption would do to a node's pods, and why",
		Long:  planHelp,
		Example: `  lifeboat plan ip-10-0-1-5.ec2.internal
  lifeboat plan ip-10-0-1-5.ec2.internal --kind spot --in 90s
  lifeboat plan ip-10-0-1-5.ec2.internal --kind scheduled --event-type-code instance-stop --in 12d

  # Is every node ready to be reclaimed?
  for n in $(kubectl get nodes -o name); do
    lifeboat plan ${n#node/} --kind spot >/dev/null || echo "${n#node/} is not"
  done`,
		Args: arguments(1, 1, "one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.replacedIn < 0 || f.margin < 0 {
				return usageErrorf("--replaced-in and --margin cannot be negative")
			}
			if err := f.check(); err != nil {
				return err
			}
			return s.plan(cmd.Context(), f, args[0])
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.replacedIn, "replaced-in", 20*time.Second, "how long it takes until a pod that left is replaced by a ready one")
	flags.DurationVar(&f.margin, "margin", 10*time.Second, "time that lifeboatd keeps between a pod's end and the deadline")
	return cmd
}

func (s *session) plan(ctx context.Context, f planFlags, arg string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	w, err := s.observe(ctx, c, f.supposition, arg)
	if err != nil {
		return err
	}
	decision, counts := policy.Decide(w.policy)
	if err := w.observePods(ctx, c, decision); err != nil {
		return err
	}
	planned := w.foretell(s, f, decision, counts)
	if s.isJSON() {
		err = s.writeJSON(planned)
	} else {
		planned.write(s.out, w.now)
	}
	if err == nil && !planned.Fits {
		return exitError{Code: ExitDoesNotFit}
	}
	return err
}

// foretell plays the plan forward from when the action begins.
func (w *observed) foretell(s *session, f planFlags, d policy.Decision, counts bool) planned {
	p := planned{Node: w.name(), InstanceID: w.instanceID(), Supposed: w.supposed, Fits: true, Pods: []plannedPod{}}
	if !counts || d.Withdrawn {
		p.nothing(d, counts, w)
		return p
	}
	p.Kind, p.EventTypeCode, p.Decision, p.Deadline = d.Notice.Kind, d.Notice.EventTypeCode, d.Decision, d.Deadline
	begins := w.begins(d)
	if begins.After(w.now) {
		p.Begins = &begins
	}
	p.Approval = w.approvalLine(s, d)
	p.AwaitsApproval = d.AwaitsApproval && w.policy.Begun.IsZero()
	before := w.at(d, begins, time.Time{})
	d = w.at(d, begins, begins)
	if p.Deadline == nil {
		p.Deadline, p.ownDeadline = d.Deadline, true
	}
	facts := drain.Facts{
		Now: begins, Deadline: d.Deadline, InstanceGone: d.InstanceGone, DoNotDisrupt: d.DoNotDisrupt, Margin: f.margin,
		Strategy: d.Strategy, Workloads: d.Workloads, Owners: w.owners, Pods: w.pods, Budgets: w.budgets,
	}
	if !record.Drains(d.Action) {
		p.leaveAlone(facts, fmt.Sprintf("the action is %s, so nobody moves it", d.Action))
		return p
	}
	if w.policy.Begun.IsZero() {
		p.queue("policy "+d.Governor, w.budget(before))
		p.queue("the pool", w.terminations(before))
	}
	facts.Gates = w.gates(d, begins)
	for _, g := range facts.Gates {
		p.Waits = append(p.Waits, g.Why)
	}
	for _, fate := range w.fates(forecast.Facts{Facts: facts, Replaced: f.replacedIn}, d) {
		p.add(fate, w.now)
	}
	p.advise(d, begins)
	if p.AwaitsApproval && p.Begins == nil && isHard(d.Deadline) {
		p.Fits = false // nobody has said that they will
	}
	return p
}

// nothing is the plan where nothing is to be done about the node any more.
func (p *planned) nothing(d policy.Decision, counts bool, w *observed) {
	p.Kind, p.Decision = d.Notice.Kind, d.Decision
	if !counts {
		p.Decision.Message = "no notice counts any more"
	}
	p.leaveAlone(drain.Facts{Now: w.now, Pods: w.pods}, "nothing is done to the node, so it stays")
}

// queue notes that the node has to wait for its turn, which nobody knows the
// time of.
func (p *planned) queue(whose string, l *limit) {
	if l.full() {
		p.Waits = append(p.Waits, fmt.Sprintf("its turn: %s takes %s; nobody knows when it comes, so the times below are from then on", whose, l))
	}
}

// begins is when the action begins: now, or when policy lets it. Where a person
// has to agree, somebody does now, or nobody does.
func (w *observed) begins(d policy.Decision) time.Time {
	begins := w.now
	if !w.policy.Begun.IsZero() {
		return begins // what has begun goes on
	}
	for _, t := range []time.Time{d.NotBefore, d.ProceedsAt} {
		if t.After(begins) {
			begins = t
		}
	}
	return begins
}

// fates plays the plan forward. A soft deadline of a change that is planned
// counts as hard once it is near: pods that still wait then are planned anew.
func (w *observed) fates(f forecast.Facts, d policy.Decision) []forecast.Fate {
	fates := forecast.Make(f)
	if f.Deadline == nil || isHard(f.Deadline) {
		return fates
	}
	near := f.Deadline.Time.Add(-policy.Lead)
	later := w.at(d, near, f.Now)
	if !near.After(f.Now) || !isHard(later.Deadline) {
		return fates
	}
	left := map[*corev1.Pod]int{}
	again := f
	again.Now, again.Deadline, again.Pods = near, later.Deadline, nil
	for i, fate := range fates {
		if fate.Step == drain.StepWaits || (!fate.Asked.IsZero() && fate.Asked.After(near)) {
			left[fate.Pod] = i
			again.Pods = append(again.Pods, fate.Pod)
		}
	}
	for _, fate := range forecast.Make(again) {
		fate.Now = fates[left[fate.Pod]].Now
		fates[left[fate.Pod]] = fate
	}
	return fates
}

// leaveAlone lists the pods of a node that is not drained. Those that would
// have to leave go down with the instance if it has a hard deadline.
func (p *planned) leaveAlone(facts drain.Facts, why string) {
	doomed := isHard(facts.Deadline)
	for _, v := range drain.NewPlan(facts).Verdicts {
		fate := forecast.Fate{Pod: v.Pod, Step: drain.StepStays, Reason: v.Reason, Fits: true}
		if v.Step != drain.StepStays {
			fate.Fits = !doomed
			fate.Reason = why
			if doomed {
				fate.Reason += ", and it goes down with the instance"
			}
		}
		p.add(fate, facts.Now)
	}
	slices.SortStableFunc(p.Pods, func(a, b plannedPod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	if !p.Fits {
		p.Mend = []string{fmt.Sprintf("the action is %s: to have the pods leave, write a policy with action Drain for %s, or change rule %q of policy %q",
			p.Decision.Action, p.Kind, p.Decision.Rule, p.Decision.Policy)}
		if p.Decision.Policy == "" {
			p.Mend = []string{fmt.Sprintf("the action is %s: to have the pods leave, write a policy with action Drain for %s", p.Decision.Action, p.Kind)}
		}
	}
}
