package interruption

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

const (
	// maxEvictionsPerNode is how many pods of one node are evicted at the same time.
	maxEvictionsPerNode = 8
	// maxEvictions is how many requests to stop pods may be in flight for all nodes.
	// The API server queues at most 300 requests of one client at the level of
	// service accounts, and answers 429 beyond that (Kubernetes, "API Priority and
	// Fairness").
	maxEvictions = 200
	// maxSlowEvictions bounds, for all nodes, the requests in flight for pods whose
	// last request timed out. They must not take the slots of other nodes.
	maxSlowEvictions = 16
	// evictionTimeout bounds one request. The API server itself retries an eviction for
	// 10 s while others change the same PodDisruptionBudget (pkg/registry/core/pod/storage,
	// EvictionsRetry); a request that ends sooner may have used up the budget without an eviction. An
	// admission webhook may take up to 30 s.
	evictionTimeout = 12 * time.Second
	// evictAgain is when a pod that does not show its eviction is evicted again.
	evictAgain = 4 * time.Second
)

// requestFailed is the reason of a pod whose eviction got no answer, because the API
// server was busy or away; requestTimedOut is that of one that took too long.
const (
	requestFailed   = "the request to stop it did not get through, and is repeated"
	requestTimedOut = "the request to stop it timed out after 12s, and is repeated; see which admission webhook is slow"
)

// evict carries out the verdicts that are due. A pod that cannot be evicted holds up
// neither the other pods nor their last calls: it is retried as a refused one.
func (p *pass) evict(ctx context.Context) error {
	verdicts := p.due()
	p.outcome.unasked = map[types.UID]string{}
	if err := p.foretell(ctx, verdicts); err != nil {
		p.report.takeBack()
		return err
	}
	for _, r := range p.request(ctx, verdicts) {
		p.heard(r)
		if r.err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(r.err, "asking a pod to stop")
			p.outcome.sooner(p.facts.now.Add(refusedAgain))
		}
	}
	return ctx.Err()
}

// evictionResult is what came of a verdict.
type evictionResult struct {
	verdict  drain.Verdict
	answer   action.Answer
	err      error
	timedOut bool
	// notSent is set where the pass ended before the request was sent.
	notSent bool
}

// request sends the requests and returns once all are answered or have timed out.
// After the first timeout it sends no more of them: the next pass begins with those.
func (p *pass) request(ctx context.Context, verdicts []drain.Verdict) []evictionResult {
	results := make([]evictionResult, len(verdicts))
	own := semaphore.NewWeighted(maxEvictionsPerNode)
	var (
		sent    sync.WaitGroup
		stopped atomic.Bool
	)
	for i, v := range verdicts {
		r := &results[i]
		r.verdict, r.notSent = v, true
		slots := []*semaphore.Weighted{own, p.evictionSlots}
		if p.facts.timedOut(v) {
			slots = []*semaphore.Weighted{own, p.slowSlots}
		}
		if acquire(ctx, slots) != nil {
			continue // the process ends
		}
		if stopped.Load() {
			release(slots)
			continue
		}
		r.notSent = false
		sent.Go(func() {
			defer release(slots)
			p.send(ctx, r)
			if r.timedOut {
				stopped.Store(true)
			}
		})
	}
	sent.Wait()
	return results
}

// send makes the one request of a verdict.
func (p *pass) send(ctx context.Context, r *evictionResult) {
	limited, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	v := r.verdict
	switch v.Step {
	case drain.StepDelete:
		r.answer, r.err = action.Delete(limited, p.Client, v.Pod, v.GraceSeconds)
	case drain.StepSurge:
		r.answer, r.err = action.Surge(limited, p.Client, v.Pod, p.facts.now, v.Origin.Seen)
	default:
		r.answer, r.err = action.Evict(limited, p.Client, v.Pod, v.GraceSeconds)
	}
	r.timedOut = r.err != nil && limited.Err() != nil && ctx.Err() == nil
}

// acquire takes a slot of each semaphore, in their order, or none.
func acquire(ctx context.Context, slots []*semaphore.Weighted) error {
	for i, s := range slots {
		if err := s.Acquire(ctx, 1); err != nil {
			release(slots[:i])
			return err
		}
	}
	return nil
}

func release(slots []*semaphore.Weighted) {
	for _, s := range slots {
		s.Release(1)
	}
}

// timedOut reports whether the last request to stop a pod timed out.
func (f *facts) timedOut(v drain.Verdict) bool {
	return slices.ContainsFunc(f.drain().PendingPods, func(left v1alpha1.PendingPod) bool {
		return left.UID == v.Pod.UID && left.Verdict == verdictRefused && left.Reason == requestTimedOut
	})
}

// foretell writes the pods that have to leave before the first of them is evicted:
// a pod that is gone before it was listed could not be accounted for. The same write
// says which pods are evicted now. The end of the pass, or the next pass after a
// crash, corrects what failed.
func (p *pass) foretell(ctx context.Context, verdicts []drain.Verdict) error {
	p.report.foretell(verdicts)
	if len(p.report.told) == 0 && !p.unlisted() {
		return nil
	}
	return p.writeDown(ctx)
}

// unlisted reports whether a pod that has to leave is not written down yet.
func (p *pass) unlisted() bool {
	known := map[types.UID]bool{}
	for _, left := range p.facts.drain().PendingPods {
		known[left.UID] = true
	}
	left := p.plan.Left()
	return slices.ContainsFunc(left[:min(len(left), maxPendingPods)], func(v drain.Verdict) bool { return !known[v.Pod.UID] })
}

// due returns the verdicts to carry out now; pods whose last request timed out come
// last.
func (p *pass) due() []drain.Verdict {
	var verdicts, slow []drain.Verdict
	for _, v := range p.plan.Verdicts {
		switch {
		case v.Step != drain.StepEvict && v.Step != drain.StepDelete && v.Step != drain.StepSurge:
		case p.facts.evictedUntil(v).After(p.facts.now):
			p.outcome.sooner(p.facts.evictedUntil(v))
		case p.facts.timedOut(v):
			slow = append(slow, v)
		default:
			verdicts = append(verdicts, v)
		}
	}
	return append(verdicts, slow...)
}

// evictedUntil is until when a pod counts as evicted although the cache does not show
// that; zero: it was not evicted.
func (f *facts) evictedUntil(v drain.Verdict) time.Time {
	for _, left := range f.drain().PendingPods {
		if left.UID == v.Pod.UID && left.AskedTime != nil {
			return left.AskedTime.Add(evictAgain)
		}
	}
	return time.Time{}
}

// heard takes in the result of a request.
func (p *pass) heard(r evictionResult) {
	v := r.verdict
	switch {
	case r.notSent && p.facts.timedOut(v): // it stays behind those that have not timed out
		p.outcome.unasked[v.Pod.UID] = requestTimedOut
		p.outcome.sooner(p.facts.now.Add(lookAgain))
		return
	case r.notSent:
		p.outcome.unasked[v.Pod.UID] = requestFailed
		p.outcome.sooner(p.facts.now.Add(lookAgain))
		return
	case r.answer.Asked:
		p.outcome.asked = append(p.outcome.asked, v)
		return
	case r.timedOut:
		p.outcome.unasked[v.Pod.UID] = requestTimedOut
		p.Metrics.busy()
		return
	case r.answer.Refused != "":
		p.outcome.unasked[v.Pod.UID] = "the API server refused its " + whatOf(v.Step) + ": " + r.answer.Refused
		p.outcome.sooner(p.facts.now.Add(refusedAgain))
		p.Metrics.refused()
		return
	case r.answer.RetryAfter > 0:
		p.outcome.sooner(p.facts.now.Add(r.answer.RetryAfter))
		p.Metrics.busy()
	}
	if v.Step != drain.StepSurge {
		p.outcome.unasked[v.Pod.UID] = requestFailed
	}
}

// whatOf names the request of a step.
func whatOf(s drain.Step) string {
	switch s {
	case drain.StepDelete:
		return "deletion"
	case drain.StepSurge:
		return "change of labels"
	}
	return "eviction"
}
