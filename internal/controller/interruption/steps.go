package interruption

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

const (
	// afterDeadline is how long an instance may outlive its hard deadline
	// before it counts as one that lives.
	afterDeadline = 10 * time.Minute
	// withoutDeadline is how long a node stays marked where nothing says when
	// the risk is over, from the notice or from when it was cordoned.
	withoutDeadline = time.Hour
	// lookAgain is when to look again for what no watch can tell.
	lookAgain = 250 * time.Millisecond
	// listTime is how long a pass waits for the list of a node's pods: another
	// pass would have to begin with what this one has written.
	listTime = 50 * time.Millisecond
	// refusedAgain is when to ask again after the API server refused an
	// eviction that the budget, as cached, allowed. The budget's own change
	// comes sooner by its watch.
	refusedAgain = 2 * time.Second
)

// outcome is what a pass did and found.
type outcome struct {
	// marked is set once the node carries the mark that the decision wants.
	marked action.Mark
	// asked are the verdicts that were carried out now.
	asked []drain.Verdict
	// refused are pods whose eviction the API server refused, with its words.
	refused map[types.UID]string
	// waits is what the whole record waits for, a sentence.
	waits string
	// drained is set once no pod is left that has to leave.
	drained bool
	// putBack is set once a node that lives is as it was.
	putBack bool
	// answered is the id of a notice that was dealt with while others stand.
	answered string
	// completed is set once nothing is left to do.
	completed bool
	// wake is when to look again; zero: when something changes.
	wake time.Time
}

// until notes what is waited for, and when to look again.
func (o *outcome) until(at time.Time, sentence string) {
	o.waits = sentence
	o.sooner(at)
}

func (o *outcome) sooner(at time.Time) {
	if !at.IsZero() && (o.wake.IsZero() || at.Before(o.wake)) {
		o.wake = at
	}
}

// pass is one walk through the steps.
type pass struct {
	*Controller
	facts    *facts
	decision policy.Decision
	plan     drain.Plan
	report   *report
	outcome  outcome
}

// step makes one thing true and reports whether it is.
type step func(context.Context, *pass) (bool, error)

// stepsFor lists what each action means, in order.
func stepsFor(a v1alpha1.Action) []step {
	switch a {
	case v1alpha1.ActionIgnore:
		return []step{over, complete}
	case v1alpha1.ActionCordon:
		return []step{window, markDoomed, over, putBack, complete}
	case v1alpha1.ActionDrain:
		return []step{window, markDoomed, listed, together, empty, over, putBack, complete}
	}
	return []step{window, markAtRisk, over, putBack, complete}
}

// act walks the steps and stops at the first that is not done.
func (c *Controller) act(ctx context.Context, seen *seen, report *report) (outcome, error) {
	d := seen.decision
	p := &pass{Controller: c, facts: seen.facts, decision: d, plan: seen.plan, report: report}
	steps := stepsFor(d.Action)
	if d.Withdrawn {
		steps = []step{putBack, complete}
	}
	for _, step := range steps {
		done, err := step(ctx, p)
		if err != nil || !done {
			return p.outcome, err
		}
	}
	return p.outcome, nil
}

// window waits for the time at which policy lets the action begin. What has
// begun goes on after the window has closed.
func window(_ context.Context, p *pass) (bool, error) {
	if !p.facts.later(p.decision) {
		return true, nil
	}
	at := p.decision.NotBefore
	p.outcome.until(at, "waits for its time, which comes at "+at.UTC().Format(time.RFC3339))
	return false, nil
}

func markAtRisk(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, action.MarkAtRisk) }
func markDoomed(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, action.MarkDoomed) }

func (p *pass) mark(ctx context.Context, mark action.Mark) (bool, error) {
	if p.facts.node != nil {
		if _, err := action.Apply(ctx, p.Client, p.facts.node, mark, p.decision.Notice.Kind); err != nil {
			return false, err
		}
	}
	p.outcome.marked = mark
	return true, nil
}

// listed makes the record's status list every pod that has to leave: a pod that
// is gone before it was written down could not be accounted for.
func listed(ctx context.Context, p *pass) (bool, error) {
	if !p.facts.podsKnown {
		// The list was asked for before the node was marked, and has come by now
		// or does soon. No other node waits longer to be marked for that.
		if p.facts.uncordoned == 0 {
			p.await(ctx)
		}
		if err := p.replan(ctx); err != nil {
			return false, err
		}
	}
	if !p.facts.podsKnown {
		p.outcome.until(p.facts.now.Add(patience), "waits for the list of the node's pods")
		return false, nil
	}
	known := map[types.UID]bool{}
	for _, left := range p.facts.was.PodsLeft {
		known[left.UID] = true
	}
	left := p.plan.Left()
	for i := range left[:min(len(left), maxPodsLeft)] {
		if !known[left[i].Pod.UID] {
			return true, p.writeDown(ctx)
		}
	}
	return true, nil
}

func (p *pass) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	p.Pods.Await(ctx, p.facts.nodeName)
}

// replan looks at the pods anew.
func (p *pass) replan(ctx context.Context) error {
	if err := p.observePods(ctx, p.facts, p.decision); err != nil {
		return fmt.Errorf("observing the pods: %w", err)
	}
	p.plan = drain.NewPlan(p.facts.forDrain(p.decision, p.Margin))
	p.report.planned(p.facts, p.decision, p.plan)
	return nil
}

// writeDown writes what the pass has found so far, before it goes on to act on
// it. To tell of it has time until the end of the pass.
func (p *pass) writeDown(ctx context.Context) error {
	p.report.reached(p.outcome)
	if err := p.write(ctx, p.report); err != nil {
		return err
	}
	p.facts.was = *p.report.after.Status.DeepCopy()
	return nil
}

// together holds back until every doomed node is cordoned, so that no pod is
// moved from one to the next.
func together(_ context.Context, p *pass) (bool, error) {
	if p.facts.uncordoned == 0 || p.facts.draining() {
		return true, nil
	}
	// The sentence names no node or number: it would be written anew with each.
	// The more there are, the longer it takes, and the less often each looks.
	after := min(patience, lookAgain+time.Duration(p.facts.uncordoned)*time.Millisecond)
	p.outcome.until(p.facts.now.Add(after),
		fmt.Sprintf("waits up to %s for the other doomed nodes to be cordoned", patience))
	return false, nil
}

// draining reports whether pods were asked to stop before: once begun, a drain
// is not held up by nodes that are doomed later.
func (f *facts) draining() bool {
	for _, left := range f.was.PodsLeft {
		if left.AskedTime != nil {
			return true
		}
	}
	return f.was.Pods.Moved > 0
}

// empty carries the plan out and waits until no pod is left.
func empty(ctx context.Context, p *pass) (bool, error) {
	if p.plan.Empty() {
		p.outcome.drained = true
		return true, nil
	}
	p.outcome.sooner(p.plan.WakeAt)
	return false, p.carryOut(ctx)
}

// over waits until the interruption is: the node or its instance has gone, or
// the time at which it should have is well past.
func over(_ context.Context, p *pass) (bool, error) {
	end := p.end()
	switch {
	case p.facts.node == nil && p.plan.Empty(),
		p.decision.InstanceGone && !nodeindex.Ready(p.facts.node),
		p.decision.Notice.InstanceAction == notice.ActionReboot && p.facts.rebooted(),
		!p.facts.now.Before(end):
		return true, nil
	}
	p.outcome.until(end, "waits for the instance to go, at the latest until "+end.UTC().Format(time.RFC3339))
	return false, nil
}

// end is when a node that is still there counts as one that lives.
func (p *pass) end() time.Time {
	switch d := p.decision; {
	case d.Deadline != nil && d.Notice.EndTime != nil && d.Notice.EndTime.After(d.Deadline.Time.Time):
		return d.Notice.EndTime.Add(afterDeadline)
	case d.Deadline != nil:
		return d.Deadline.Time.Add(afterDeadline)
	case !d.Until.IsZero():
		return d.Until
	}
	begun := p.decision.Notice.Time.Time
	if c := meta.FindStatusCondition(p.facts.was.Conditions, v1alpha1.ConditionCordoned); c != nil && c.Status == metav1.ConditionTrue {
		begun = c.LastTransitionTime.Time // its window may have opened long after the notice
	}
	return begun.Add(withoutDeadline)
}

// putBack makes a node that lives what it was. An instance that was stopped
// comes back as the same node, so that counts as well; by then it is not
// Ready, and nothing is scheduled to it before it is.
func putBack(ctx context.Context, p *pass) (bool, error) {
	if p.facts.node != nil {
		changed, err := action.PutBack(ctx, p.Client, p.facts.node)
		if err != nil {
			return false, err
		}
		p.outcome.putBack = changed
	}
	return true, nil
}

// complete ends the interruption, or, where another notice still stands, only
// what this one was about.
func complete(_ context.Context, p *pass) (bool, error) {
	if p.facts.stands(p.decision) {
		p.outcome.answered = p.decision.Notice.ID
		p.outcome.until(p.facts.now, "waits for what else is to come")
		return false, nil
	}
	p.outcome.completed = true
	return true, nil
}
