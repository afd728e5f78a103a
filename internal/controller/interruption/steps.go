package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// afterDeadline is how long an instance may outlive its hard deadline
	// before it counts as one that lives.
	afterDeadline = 10 * time.Minute
	// withoutDeadline is how long a node stays marked where nothing says when
	// the risk is over, from the notice or from when it was cordoned.
	withoutDeadline = time.Hour
	// staleCacheRequeue is when to look again at an Interruption whose latest version
	// is not in the cache yet, in case its watch was lost.
	staleCacheRequeue = 250 * time.Millisecond
	// lookAgain is when to look again for what no watch can tell.
	lookAgain = 250 * time.Millisecond
	// podListRequeue is when to look again whether a node's pods are listed, in case
	// the notification of the pod watch is lost.
	podListRequeue = 5 * time.Second
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
	// markedAt is when it was put on it, as far as this process knows; else now.
	markedAt time.Time
	// asked are the verdicts that were carried out now.
	asked []drain.Verdict
	// unasked are pods that were to be asked to stop and could not be, and why.
	unasked map[types.UID]string
	// waits is what the whole record waits for, a sentence.
	waits string
	// stage is the phase that the record is in before anything was done to its
	// node: AwaitingApproval or Queued; empty otherwise.
	stage v1alpha1.Phase
	// quiet is set where nothing is to be written: there is nothing new but that
	// other nodes are waited for, whose turn it is.
	quiet bool
	// postponed is set once a node whose drain had begun was put back, because
	// the deadline has moved away.
	postponed bool
	// letGo is set once a node that is not to be drained any more was put back.
	letGo bool
	// hooks is how far the hooks have come; nil where none was looked at.
	hooks []v1alpha1.HookStatus
	// terminated is set once the instance was asked to terminate in this pass.
	terminated bool
	// drained is set once no pod is left that has to leave.
	drained bool
	// undone is how many pods were given back to their ReplicaSet.
	undone int
	// answerable is set once nothing on the node is needed any more, and the
	// lifecycle hooks that hold the instance can let it go.
	answerable bool
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
	begin := []step{approval, window, inTurn}
	end := []step{over, putBack, complete}
	switch a {
	case v1alpha1.ActionIgnore:
		return []step{letGo, over, complete}
	case v1alpha1.ActionCordon:
		return slices.Concat(begin, []step{markDoomed}, end)
	case v1alpha1.ActionDrain:
		return slices.Concat(begin, []step{markDoomed, awaitBarrier, surveyed, tightened, ordered, hooksBefore, empty, volumesOff, hooksAfter, handedOver, nodeDeleted, unheld, freed}, end)
	case v1alpha1.ActionTerminate:
		return slices.Concat(begin, []step{terminations, markDoomed, awaitBarrier, surveyed, tightened, ordered, hooksBefore, empty, detached, hooksAfter, handedOver, nodeDeleted, unheld, freed, terminated}, end)
	}
	return slices.Concat([]step{letGo, window, markAtRisk}, end)
}

// act walks the steps and stops at the first that is not done.
func (c *Controller) act(ctx context.Context, seen *seen, report *report) (outcome, error) {
	d := seen.decision
	p := &pass{Controller: c, facts: seen.facts, decision: d, plan: seen.plan, report: report}
	p.outcome.sooner(d.Next)
	steps := stepsFor(d.Action)
	if d.Withdrawn {
		steps = []step{putBack, complete}
	}
	err := p.walk(ctx, steps)
	if !d.Withdrawn && !isConflict(err) {
		err = errors.Join(err, p.keep(ctx))
	}
	return p.outcome, err
}

func (p *pass) walk(ctx context.Context, steps []step) error {
	for _, step := range steps {
		if done, err := step(ctx, p); err != nil || !done {
			return err
		}
	}
	return nil
}

func markAtRisk(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, action.MarkAtRisk) }
func markDoomed(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, action.MarkDoomed) }

func (p *pass) mark(ctx context.Context, mark action.Mark) (bool, error) {
	over := p.facts.begun(p.decision) && !p.facts.now.Before(p.end()) // the node is restored, or about to be
	if node := p.facts.node; node != nil && !over {
		stale := p.nodeWrites.isStale(node.Name, node.ResourceVersion, p.facts.now)
		switch isCordoned := !p.barrier.cordonTime(p.facts.in.Name, time.Time{}).IsZero(); {
		case stale && mark == action.MarkDoomed && isCordoned: // by this process
			p.outcome.sooner(p.facts.now.Add(staleCacheRequeue))
		case stale: // this process may just have restored it
			p.outcome.quiet = true
			p.outcome.until(p.facts.now.Add(staleCacheRequeue), "waits for the cache of nodes")
			return false, nil
		default:
			if err := p.patchMark(ctx, node, mark); err != nil {
				return false, err
			}
		}
	}
	p.outcome.marked, p.outcome.markedAt = mark, p.barrier.cordonTime(p.facts.in.Name, p.facts.now)
	return true, nil
}

// patchMark puts a mark on the node: for MarkDoomed it cordons the node.
func (p *pass) patchMark(ctx context.Context, node *corev1.Node, mark action.Mark) error {
	changed, err := action.Apply(ctx, p.Client, node, mark, p.decision.Notice.Kind)
	if changed {
		p.nodeWrites.replaced(node.Name, node.ResourceVersion, p.facts.now)
	}
	if err == nil && mark == action.MarkDoomed && (changed || action.IsMarked(node, mark)) {
		p.barrier.setCordoned(p.facts.in.Name, p.barrier.cordonTime(p.facts.in.Name, p.Clock()))
	}
	return err
}

// surveyed waits until the pods of the node are listed.
func surveyed(ctx context.Context, p *pass) (bool, error) {
	if !p.facts.podsKnown {
		p.await(ctx) // it was asked for before the node was marked, or soon comes
		if err := p.replan(ctx); err != nil {
			return false, err
		}
	}
	if !p.facts.podsKnown {
		p.outcome.quiet = isHard(&p.decision)
		p.outcome.until(p.facts.now.Add(podListRequeue), "waits for the list of the node's pods")
		return false, nil
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

// awaitBarrier waits until every interrupted node is cordoned.
func awaitBarrier(_ context.Context, p *pass) (bool, error) {
	if p.facts.barrierWait == 0 {
		return true, nil
	}
	// Many Interruptions with a hard deadline wait at the same time. A write for each
	// would only say that it waits.
	p.outcome.quiet = isHard(&p.decision)
	p.outcome.until(p.facts.now.Add(p.facts.barrierWait),
		fmt.Sprintf("waits up to %s for the other interrupted nodes to be cordoned", barrierTimeout))
	return false, nil
}

func isHard(d *policy.Decision) bool {
	return notice.IsFirm(d.Deadline)
}

// draining reports whether pods were asked to stop before: once begun, a drain
// is not held up by nodes that are doomed later.
func (f *facts) draining() bool {
	return f.drain().Pods.Moved > 0 || slices.ContainsFunc(f.drain().PendingPods, func(left v1alpha1.PendingPod) bool {
		return left.AskedTime != nil
	})
}

// empty carries the plan out and waits until no pod is left, or the
// interruption is over without. Before any pod is asked, by this or by Karpenter,
// all are in the record's status: one that is gone before it was written down could
// not be accounted for.
func empty(ctx context.Context, p *pass) (bool, error) {
	if p.plan.Empty() {
		if node := p.facts.node; node != nil && !p.Pods.Current(node.Name) { // a pod may have come since they were listed
			p.outcome.until(p.facts.now.Add(lookAgain), "waits for the watch of the node's pods")
			return false, nil
		}
		p.outcome.drained = true
		return true, nil
	}
	end := p.end()
	if !p.facts.now.Before(end) || p.isDone() {
		return true, nil // the node lives, or its instance is terminated whatever is left
	}
	if p.decision.Action == v1alpha1.ActionTerminate {
		p.outcome.sooner(futureOnly(replacement.HandoverAt(p.decision.Deadline, p.Margin), p.facts.now))
	}
	p.outcome.sooner(p.plan.WakeAt)
	p.outcome.sooner(end)
	if at := p.decision.NotBefore; at.After(p.facts.now) {
		p.outcome.sooner(at) // it has begun before, and its deadline is soft until then
	}
	if d := p.decision.Deadline; d != nil && d.Type == v1alpha1.DeadlineSoft {
		if at := d.Time.Add(-policy.Lead); at.After(p.facts.now) {
			p.outcome.sooner(at) // it is hard from then on, and pods have a last call
		}
	}
	if err := p.evict(ctx); err != nil {
		return false, err
	}
	return false, p.handOver(ctx)
}

// futureOnly returns a moment if it is in the future, else zero.
func futureOnly(at, now time.Time) time.Time {
	if at.After(now) {
		return at
	}
	return time.Time{}
}
