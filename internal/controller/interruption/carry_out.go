package interruption

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// abreast is how many pods of one node are asked to stop at the same time. The
// API server's priority and fairness is what limits the whole.
const abreast = 8

// inFlight is how many requests to stop pods may be under way for all nodes. More
// are not faster, and once there are more than the API server lets one client
// queue (300 at the level of service accounts, of which some are other requests)
// it refuses with 429, and a request that is refused waits for a whole second
// (Kubernetes, "API Priority and Fairness").
const inFlight = 200

// askedAgain is when a pod that was asked to stop, and does not show it, is
// asked again: the watch has caught up by then, so the request was lost.
const askedAgain = 3 * time.Second

// notThrough is what is written of a pod that could not be asked to stop, because
// the API server was busy, or away.
const notThrough = "the request to stop it did not get through, and is repeated"

// carryOut asks the pods to stop that the plan says are to be asked now. One
// that cannot be asked holds up none of the others, nor their last calls: it is
// tried again as one whose eviction was refused.
func (p *pass) carryOut(ctx context.Context) error {
	if slices.ContainsFunc(p.plan.Verdicts, func(v drain.Verdict) bool { return v.AwaitsOthers }) {
		p.Pods.Current(p.facts.nodeName) // or, where there is much to do, it would be known late that those have left
	}
	verdicts := p.toAsk()
	if len(verdicts) > 0 {
		defer p.Busy()()
	}
	p.outcome.unasked = map[types.UID]string{}
	if err := p.foretell(ctx, verdicts); err != nil {
		p.report.takeBack()
		return err
	}
	answers, errs := p.askAll(ctx, verdicts)
	for i, v := range verdicts {
		p.heard(v, answers[i])
		if errs[i] != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(errs[i], "asking a pod to stop")
			p.outcome.sooner(p.facts.now.Add(refusedAgain))
		}
	}
	return ctx.Err()
}

// askAll asks pods to stop, and returns what came of each once all have answered. Those that
// wait for a place have no goroutine meanwhile: they are many, where many nodes go at once.
func (p *pass) askAll(ctx context.Context, verdicts []drain.Verdict) ([]action.Answer, []error) {
	answers, errs := make([]action.Answer, len(verdicts)), make([]error, len(verdicts))
	own := semaphore.NewWeighted(abreast)
	var asked sync.WaitGroup
	for i, v := range verdicts {
		if errs[i] = acquire(ctx, own, p.asking); errs[i] != nil {
			continue // the process ends
		}
		asked.Go(func() {
			defer own.Release(1)
			defer p.asking.Release(1)
			answers[i], errs[i] = p.ask(ctx, v)
		})
	}
	asked.Wait()
	return answers, errs
}

// acquire takes a place of each, in their order, or none.
func acquire(ctx context.Context, first, second *semaphore.Weighted) error {
	if err := first.Acquire(ctx, 1); err != nil {
		return err
	}
	if err := second.Acquire(ctx, 1); err != nil {
		first.Release(1)
		return err
	}
	return nil
}

// foretell writes down the pods that have to leave, and says of those that are
// about to be asked to stop that they were: one write does for both, and most are.
// What comes to nothing is taken back at the end of the pass, or by the next, should
// there be a crash in between. Pods that the record was made with are written down.
func (p *pass) foretell(ctx context.Context, verdicts []drain.Verdict) error {
	p.report.foretell(verdicts)
	if len(p.report.told) == 0 && !p.unlisted() {
		return nil
	}
	if p.wasFound(verdicts) {
		p.report.hasTime = true
		return nil
	}
	return p.writeDown(ctx)
}

// unlisted reports whether a pod that has to leave is not written down yet.
func (p *pass) unlisted() bool {
	known := map[types.UID]bool{}
	for _, left := range p.facts.was.PodsLeft {
		known[left.UID] = true
	}
	left := p.plan.Left()
	return slices.ContainsFunc(left[:min(len(left), maxPodsLeft)], func(v drain.Verdict) bool { return !known[v.Pod.UID] })
}

// toAsk returns the verdicts that want something done now.
func (p *pass) toAsk() []drain.Verdict {
	var verdicts []drain.Verdict
	for _, v := range p.plan.Verdicts {
		switch {
		case v.Step != drain.StepEvict && v.Step != drain.StepDelete && v.Step != drain.StepSurge:
		case p.facts.askedLately(v):
			p.outcome.sooner(p.facts.askedUntil(v))
		default:
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// askedLately reports whether a pod was asked a moment ago what a verdict says, by
// what the record or this process knows.
func (f *facts) askedLately(v drain.Verdict) bool { return f.askedUntil(v).After(f.now) }

// takenAt is when this process had a pod's eviction taken of late, where the pod does not
// show it yet; else zero.
func (f *facts) takenAt(pod *corev1.Pod) time.Time {
	if until := f.taken(pod.UID); pod.DeletionTimestamp == nil && until.After(f.now) {
		return until.Add(-takenFor)
	}
	return time.Time{}
}

// askedUntil is until when a pod counts as asked, though it does not show it.
func (f *facts) askedUntil(v drain.Verdict) time.Time {
	var until time.Time
	if v.Step == drain.StepEvict {
		until = f.taken(v.Pod.UID)
	}
	for _, left := range f.was.PodsLeft {
		if left.UID != v.Pod.UID || left.AskedTime == nil {
			continue
		}
		if at := left.AskedTime.Add(askedAgain); at.After(until) {
			until = at
		}
	}
	return until
}

// ask makes the one request that the verdict says.
func (p *pass) ask(ctx context.Context, v drain.Verdict) (action.Answer, error) {
	switch v.Step {
	case drain.StepDelete:
		return action.Delete(ctx, p.Client, v.Pod, v.GraceSeconds)
	case drain.StepSurge:
		return action.Surge(ctx, p.Client, v.Pod, p.facts.now, v.Origin.Seen)
	}
	return action.Evict(ctx, p.Client, v.Pod, v.GraceSeconds)
}

// heard notes what the API server answered.
func (p *pass) heard(v drain.Verdict, answer action.Answer) {
	switch {
	case answer.Asked:
		p.outcome.asked = append(p.outcome.asked, v)
		if answer.Taken && v.Step == drain.StepEvict {
			p.taken.note(v.Pod.UID, p.facts.now)
		}
		return
	case answer.Refused != "":
		p.outcome.unasked[v.Pod.UID] = "the API server refused its " + whatOf(v.Step) + ": " + answer.Refused
		p.outcome.sooner(p.facts.now.Add(refusedAgain))
		p.Metrics.refused()
		return
	case answer.RetryAfter > 0:
		p.outcome.sooner(p.facts.now.Add(answer.RetryAfter))
		p.Metrics.busy()
	}
	if v.Step != drain.StepSurge {
		p.outcome.unasked[v.Pod.UID] = notThrough
	}
}

// whatOf names what was asked for.
func whatOf(s drain.Step) string {
	switch s {
	case drain.StepDelete:
		return "deletion"
	case drain.StepSurge:
		return "change of labels"
	}
	return "eviction"
}
