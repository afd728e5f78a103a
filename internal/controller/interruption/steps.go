package interruption

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// requeueCache is when to look again after a stale cache, in case its watch was lost, and for a
// change that no watch reports.
const requeueCache = 250 * time.Millisecond

// outcome is what the steps did and when to look again.
type outcome struct {
	status.Outcome
	// skipWrite is set where the status need not be written: the pass only waits for
	// other nodes.
	skipWrite bool
	// answerable is set once nothing on the node is needed any more, so that lifecycle
	// hooks can be completed.
	answerable bool
	// terminating is set where EC2 confirms the termination that was requested.
	terminating bool
	// held says which hold keeps the instance; empty: none does.
	held string
	// requeue is when to look again; zero: when something changes.
	requeue time.Time
}

// wait notes what is waited for, and when to look again.
func (o *outcome) wait(at time.Time, sentence string) {
	o.Waits = sentence
	o.requeueAt(at)
}

func (o *outcome) requeueAt(at time.Time) {
	if !at.IsZero() && (o.requeue.IsZero() || at.Before(o.requeue)) {
		o.requeue = at
	}
}

// pass is one walk through the steps.
type pass struct {
	*Controller
	facts    *facts
	decision policy.Decision
	plan     drain.Plan
	update   *status.Update
	outcome  outcome
	// goneAt returns when a pod was first missed; zero: unknown. It is nil while the pods are not known.
	goneAt func(types.UID) time.Time
	// drains is set where the steps of the pass evict pods, and reachedEvictions once one did.
	drains, reachedEvictions bool
	// sentAtLastCall is set where pods were evicted although an earlier step failed or waits.
	sentAtLastCall bool
}

// step makes one thing true and reports whether it is.
type step func(context.Context, *pass) (bool, error)

// stepsFor lists what each action means, in order.
func stepsFor(a v1beta1.Action) []step {
	markAtRisk := func(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, mutate.MarkAtRisk) }
	markInterrupted := func(ctx context.Context, p *pass) (bool, error) { return p.mark(ctx, mutate.MarkInterrupted) }
	begin := []step{awaitApproval, awaitWindow, awaitBudget}
	drainNode := []step{
		markInterrupted, awaitCordonBarrier, awaitPodList, setTerminationTimestamp, orderReplacement, runHooksBefore, evictPods,
	}
	afterPods := []step{runHooksAfter, handOver, deleteNode, awaitLifecycleHooks, terminateDetached}
	end := []step{awaitInstanceGone, restoreNode, complete}
	switch a {
	case v1beta1.ActionIgnore:
		return []step{release, awaitInstanceGone, complete}
	case v1beta1.ActionCordon:
		return slices.Concat(begin, []step{markInterrupted, endDrain}, end)
	case v1beta1.ActionDrain:
		return slices.Concat(begin, drainNode, []step{awaitVolumeDetachOfGroup}, afterPods, end)
	case v1beta1.ActionTerminate:
		return slices.Concat(begin, []step{awaitTerminationSlot}, drainNode, []step{awaitVolumeDetach}, afterPods, []step{terminateInstance}, end)
	}
	return slices.Concat([]step{release, awaitWindow, markAtRisk}, end)
}

// act walks the steps and stops at the first that is not done.
func (p *pass) act(ctx context.Context) error {
	p.outcome.requeueAt(p.decision.Next)
	steps := stepsFor(p.decision.Action)
	switch {
	case p.Observe && p.decision.Withdrawn:
		steps = []step{complete}
	case p.Observe:
		steps = []step{awaitInstanceGone, complete}
	case p.facts.pause != nil:
		steps = stepsPaused()
	case p.decision.Withdrawn, p.facts.nothingLeft(p.decision), p.isLate():
		steps = []step{restoreNode, complete}
	default:
		p.drains = record.Drains(p.decision.Action)
	}
	p.requeueForGone()
	err := p.walk(ctx, steps)
	if p.outcome.Stage != "" || p.facts.waitsForWindow(p.decision) {
		p.barrier.expect(p.facts.in.Name, p.plannedAt())
	}
	err = errors.Join(err, p.evictAtLastCall(ctx))
	if !p.decision.Withdrawn && !p.Observe && !apierrors.IsConflict(err) {
		err = errors.Join(err, p.confirmHooks(ctx))
	}
	p.apply()
	return err
}

func (p *pass) walk(ctx context.Context, steps []step) error {
	for _, step := range steps {
		if done, err := step(ctx, p); err != nil || !done {
			return err
		}
	}
	return nil
}

// apply notes in the status what the steps did.
func (p *pass) apply() {
	p.outcome.Node, p.outcome.Uncorroborated = p.facts.node, p.doubt()
	p.update.Apply(p.outcome.Outcome)
}

// Checkpoint writes the status in the middle of a pass, before a call that must not
// repeat after a crash. Events, metrics and logs follow at the end of the pass.
func (p *pass) Checkpoint(ctx context.Context) error {
	p.apply()
	if err := p.writer().Write(ctx, p.update); err != nil {
		return err
	}
	p.facts.was = *p.update.Status().DeepCopy()
	return nil
}

// Drain is the drain of the status that is being built.
func (p *pass) Drain() *v1beta1.DrainStatus { return p.update.Drain() }

// awaitInstanceGone waits until the node or its instance is gone, or its deadline is well
// past.
func awaitInstanceGone(_ context.Context, p *pass) (bool, error) {
	end := p.end()
	switch {
	case p.facts.awaitsNode(p.decision) && !p.outcome.terminating:
		end = p.facts.nodeReturnsBy(p.decision)
	case p.facts.node == nil && p.plan.Empty(),
		p.decision.InstanceGone && !nodeindex.Ready(p.facts.node),
		p.facts.rebooted(p.decision):
		return true, nil
	case p.isRequested():
		return p.awaitUncordon()
	case lasts(p.decision):
		p.outcome.wait(p.facts.now.Add(withoutDeadline), "waits until the status checks of the instance pass, or until the instance goes")
		return false, nil
	case !p.facts.now.Before(end) && p.facts.isLeaving(): // for example another hook holds it
		end = p.facts.now.Add(leavingRequeue).Truncate(leavingRequeue)
	case !p.facts.now.Before(end):
		return true, nil
	}
	p.outcome.wait(end, cmp.Or(p.outcome.held, "waits for the instance to go, at the latest until "+end.UTC().Format(time.RFC3339)))
	return false, nil
}

// complete completes the Interruption, or, where another notice still applies, only the
// work for this notice.
func complete(_ context.Context, p *pass) (bool, error) {
	if p.facts.otherNoticeApplies(p.decision) && !replacement.IsDetached(p.facts.drain().Replacement) {
		p.outcome.Answered = notice.Key(&p.decision.Notice)
		p.outcome.KeepsDrain = p.facts.servesAnother(p.decision) && p.facts.nextIsDue(p.decision)
		p.outcome.wait(p.facts.now, "waits for the next notice")
		return false, nil
	}
	p.outcome.Completed = true
	return true, nil
}
