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
	"github.com/lifeboat-dev/lifeboat/internal/drain/simulate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const planHelp = `Show what would happen to each pod of a node if it were interrupted now: when
the pod is asked to stop, its grace period, and the reason. If the node already has
an interruption, the command shows that one, unless --kind is given.

The prediction uses the controller's own code and simulates the drain. It assumes:
  - every pod uses its whole grace period
  - a pod that left has a ready successor after --replacement-time
  - a replacement that Karpenter launches is Ready after one minute
  - every BeforeDrain hook takes its whole timeout
  - if an approval is required, a person approves now

With --zone or --spot it plans many nodes, as if each received the notice now, and
shows the pods that cannot leave in time. Each node is planned alone: a
PodDisruptionBudget that covers pods of several nodes can delay them further, up to
their last call.

Exit code 3: some pod cannot leave with its whole grace period before the
deadline.`

type planFlags struct {
	whatIf
	replacementTime, margin time.Duration
	surge                   bool
	// zone and spot select many nodes.
	zone string
	spot bool
}

func defaultPlanFlags() planFlags {
	return planFlags{replacementTime: 20 * time.Second, margin: 10 * time.Second, surge: true}
}

func newPlan(s *session) *cobra.Command {
	f := defaultPlanFlags()
	cmd := &cobra.Command{
		Use:   "plan [NODE|INSTANCE]",
		Short: "Predict what an interruption would do to a node's pods",
		Long:  planHelp,
		Example: `  lifeboat plan ip-10-0-1-5.ec2.internal
  lifeboat plan ip-10-0-1-5.ec2.internal --kind spot --in 90s
  lifeboat plan ip-10-0-1-5.ec2.internal --kind scheduled --event-type-code instance-stop --in 12d

  # All spot nodes of a zone at once: which pods cannot leave in time?
  lifeboat plan --zone us-east-1b --spot`,
		Args: arguments(0, 1, "one node or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.replacementTime < 0 || f.margin < 0 {
				return usageErrorf("--replacement-time and --margin cannot be negative")
			}
			if err := f.check(); err != nil {
				return err
			}
			switch many := f.zone != "" || f.spot; {
			case many && len(args) > 0:
				return usageErrorf("--zone and --spot select the nodes: remove %s", args[0])
			case many:
				return s.planMany(cmd.Context(), f)
			case len(args) == 0:
				return usageErrorf("lifeboat plan takes one node or instance, got 0: write its name, or select many with --zone or --spot")
			}
			return s.plan(cmd.Context(), f, args[0])
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.replacementTime, "replacement-time", f.replacementTime, "assumed time until the successor of a pod is ready")
	flags.BoolVar(&f.surge, "surge", f.surge, "value of lifeboatd's flag --surge; false evicts pods that would be surged")
	flags.DurationVar(&f.margin, "margin", f.margin, "time that lifeboatd keeps between the end of a pod and the deadline")
	flags.StringVar(&f.zone, "zone", "", "plan all nodes of this zone at once, such as us-east-1b")
	flags.BoolVar(&f.spot, "spot", false, "plan all spot nodes at once, or those of --zone")
	return cmd
}

func (s *session) plan(ctx context.Context, f planFlags, arg string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.warnOfSkew(ctx, c)
	w, err := s.observe(ctx, c, f.whatIf, arg)
	if err != nil {
		return err
	}
	planned, err := s.predict(ctx, c, f, w)
	if err != nil {
		return err
	}
	planned.Karpenter = c.karpenterOf(ctx, w)
	if s.isJSON() {
		err = s.writeJSON(planned)
	} else {
		planned.write(s.out, s.now())
	}
	if err == nil && !planned.Fits {
		return exitError{Code: ExitDoesNotFit}
	}
	return err
}

// planOne predicts the drain of one node.
func (s *session) planOne(ctx context.Context, c cluster, f planFlags, arg string) (planned, error) {
	w, err := s.observe(ctx, c, f.whatIf, arg)
	if err != nil {
		return planned{}, err
	}
	return s.predict(ctx, c, f, w)
}

// predict predicts the drain of a node that was observed.
func (s *session) predict(ctx context.Context, c cluster, f planFlags, w *observed) (planned, error) {
	decision, counts := w.decide()
	if err := w.observePods(ctx, c, decision); err != nil {
		return planned{}, err
	}
	return w.simulate(s, f, decision, counts), nil
}

// simulate simulates the drain from the start of the action.
func (w *observed) simulate(s *session, f planFlags, d policy.Decision, counts bool) planned {
	p := planned{Node: w.name(), InstanceID: w.instanceID(), Supposed: w.supposed, Fits: true, Pods: []plannedPod{}}
	if !counts || d.Withdrawn {
		p.noAction(d, counts, w)
		return p
	}
	p.Kind, p.EventTypeCode, p.Decision, p.Deadline, p.doNotDisrupt = d.Notice.Kind, d.Notice.EventTypeCode, d.Decision, d.Deadline, d.DoNotDisrupt
	begins := w.begins(d)
	p.setBegins(begins, w.now)
	p.Approval = w.approvalLine(s, d)
	p.Replacement = w.replacementPlan(d, begins)
	p.AwaitsApproval = d.AwaitsApproval && d.Begun.IsZero()
	before := w.at(d, begins, time.Time{})
	d = w.at(d, begins, begins)
	if p.Deadline == nil {
		p.Deadline, p.ownDeadline = d.Deadline, true
	}
	facts := drain.Facts{
		Now: begins, Deadline: d.Deadline, InstanceGone: d.InstanceGone, DoNotDisrupt: d.DoNotDisrupt, Margin: f.margin,
		SurgeDisabled: !f.surge,
		Strategy:      d.Strategy, Workloads: d.Workloads, Owners: w.owners, Pods: w.pods, Budgets: w.budgets,
	}
	if w.node != nil && nodeindex.IsUnreachable(w.node) {
		p.isUnreachable(facts)
		return p
	}
	if !record.Drains(d.Action) {
		p.leaveAlone(facts, fmt.Sprintf("the action is %s, so the pod is not moved", d.Action))
		return p
	}
	if p.addPause(s, facts, w.pause) {
		return p
	}
	facts.Gates = p.addWaits(w, d, before, begins)
	facts.CapacityAt = w.capacityAt(d, begins)
	for _, result := range w.forecasts(simulate.Facts{Facts: facts, Replaced: f.replacementTime}, d) {
		p.add(result, w.now)
	}
	p.advise(d, begins)
	if p.AwaitsApproval && p.Begins == nil && isHard(d.Deadline) {
		p.Fits = false // without an approval no pod leaves
	}
	return p
}

// setBegins notes when the action begins, if that is later.
func (p *planned) setBegins(at, now time.Time) {
	if at.After(now) {
		p.Begins = &at
	}
}

// isUnreachable describes a node that no notice can reach: nothing happens to its pods.
func (p *planned) isUnreachable(facts drain.Facts) {
	p.leaveAlone(facts, "no notice reaches the node, so the pod is not moved")
	p.Unreachable = "no notice can reach this node: it runs on EC2 and has no spec.providerID"
	p.Replacement, p.Fits, p.Fix = "", false, []string{nodeindex.ProviderIDFix}
}

// addWaits adds what all pods wait for, and returns it as gates.
func (p *planned) addWaits(w *observed, d, before policy.Decision, begins time.Time) []drain.Gate {
	if before.Begun.IsZero() { // d assumes that the drain has begun
		p.queue("policy "+d.EffectivePolicy, w.budget(before))
		p.queue("the pool", w.terminations(before))
	}
	gates := w.gates(d, begins)
	for _, g := range gates {
		p.Waits = append(p.Waits, g.Why)
	}
	return gates
}

// noAction describes a node for which there is nothing to do.
func (p *planned) noAction(d policy.Decision, counts bool, w *observed) {
	p.Kind, p.Decision = d.Notice.Kind, d.Decision
	if !counts {
		p.Decision.Message = "all notices are withdrawn or handled"
	}
	p.leaveAlone(drain.Facts{Now: w.now, Pods: w.pods}, "the node is not drained, so the pod stays")
}

// queue adds a wait for the given limit, if it is used up. The end of that wait
// cannot be predicted.
func (p *planned) queue(whose string, l *limit) {
	if l.full() {
		p.Waits = append(p.Waits, fmt.Sprintf("its turn: %s allows %s; the start cannot be predicted, so the times below count from it", whose, l))
	}
}

// begins returns when the action starts: now, or the earliest time that the
// policy allows. If an approval is pending, it assumes that a person approves
// now, or that the policy proceeds without one.
func (w *observed) begins(d policy.Decision) time.Time {
	begins := w.now
	if !d.Begun.IsZero() {
		return w.afterPause(d, begins) // the drain has started already
	}
	for _, t := range []time.Time{w.afterPause(d, begins), d.NotBefore, d.ProceedsAt} {
		if t.After(begins) {
			begins = t
		}
	}
	return begins
}

// forecasts simulates the drain. A soft deadline of a planned change becomes hard
// when it is near. Pods that still wait at that time are simulated again from
// there.
func (w *observed) forecasts(f simulate.Facts, d policy.Decision) []simulate.PodOutcome {
	forecasts := simulate.Simulate(f)
	if f.Deadline == nil || isHard(f.Deadline) {
		return forecasts
	}
	near := f.Deadline.Time.Add(-policy.Lead)
	later := w.at(d, near, f.Now)
	if !near.After(f.Now) || !isHard(later.Deadline) {
		return forecasts
	}
	left := map[*corev1.Pod]int{}
	hardFacts := f
	hardFacts.Now, hardFacts.Deadline, hardFacts.Pods = near, later.Deadline, nil
	for i, result := range forecasts {
		if result.Step == drain.StepWaits || (!result.Asked.IsZero() && result.Asked.After(near)) {
			left[result.Pod] = i
			hardFacts.Pods = append(hardFacts.Pods, result.Pod)
		}
	}
	for _, result := range simulate.Simulate(hardFacts) {
		result.Now = forecasts[left[result.Pod]].Now
		forecasts[left[result.Pod]] = result
	}
	return forecasts
}

// leaveAlone lists the pods of a node that is not drained. If the deadline is
// hard, the pods that would have to move are lost with the instance.
func (p *planned) leaveAlone(facts drain.Facts, why string) {
	isLost := isHard(facts.Deadline)
	for _, v := range drain.NewPlan(facts).Verdicts {
		result := simulate.PodOutcome{Pod: v.Pod, Step: drain.StepStays, Reason: v.Reason, Fits: true}
		if v.Step != drain.StepStays {
			result.Fits = !isLost
			result.Reason = why
			if isLost {
				result.Reason += ", and it is lost with the instance"
			}
		}
		p.add(result, facts.Now)
	}
	slices.SortStableFunc(p.Pods, func(a, b plannedPod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	if !p.Fits {
		p.Fix = []string{fmt.Sprintf("the action is %s: to move the pods, write a policy with action Drain for %s, or change rule %q of policy %q",
			p.Decision.Action, p.Kind, p.Decision.Rule, p.Decision.Policy)}
		if p.Decision.Policy == "" {
			p.Fix = []string{fmt.Sprintf("the action is %s: to move the pods, write a policy with action Drain for %s", p.Decision.Action, p.Kind)}
		}
	}
}
