// Package evict sends the requests that evict or delete pods, within its limits, and
// reports for each pod what happened.
package evict

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
)

const (
	// MaxPerNode is how many pods of one node are evicted at the same time.
	MaxPerNode = 8
	// Timeout bounds one request. The API server itself retries an eviction for 10 s while
	// others change the same PodDisruptionBudget (pkg/registry/core/pod/storage,
	// EvictionsRetry). A request that ends sooner may have used up the budget without an
	// eviction. An admission webhook may take up to 30 s.
	Timeout = 12 * time.Second
	// RetryRefused is when to retry after the API server refused an eviction that the
	// budget, as cached, allowed. The watch of the budget usually comes first.
	RetryRefused = 2 * time.Second
	// retryNotSent is when to send a request that was not sent.
	retryNotSent = 250 * time.Millisecond
)

// The reasons of pods whose eviction got no answer: the API server was busy or unreachable, or
// the request took too long.
const (
	reasonFailed   = "the request to stop it did not get through, and is repeated"
	reasonTimedOut = "the request to stop it timed out after 12s, and is repeated; see which admission webhook is slow"
)

// Evictor sends requests. Its limits apply to all nodes together.
type Evictor struct{ limits *limits }

// New returns an Evictor.
func New() *Evictor { return &Evictor{limits: newLimits()} }

// Request is a verdict to carry out.
type Request struct {
	Verdict drain.Verdict
	// TimedOut is set where the last request for the pod timed out.
	TimedOut bool
}

// Result is what happened to a pod.
type Result struct {
	Verdict drain.Verdict
	// Evicted is set where the API server accepted the request.
	Evicted bool
	// Reason is why the pod was not evicted, and Cause the same in one word; empty for a surge that is retried.
	Reason string
	Cause  v1beta1.PodReason
	// Refused is set where a budget refused, Busy where the API server had no time.
	Refused, Busy bool
	// RetryAfter is when to retry; zero: with the next pass.
	RetryAfter time.Duration
	// Err is an error to log.
	Err error
}

// Send sends the requests and returns once all are answered or have timed out. After
// the first timeout it sends no more of them: the next pass begins with those.
func (e *Evictor) Send(ctx context.Context, c client.Client, now time.Time, requests []Request) []Result {
	results := make([]Result, len(requests))
	node := semaphore.NewWeighted(MaxPerNode)
	var (
		sent    sync.WaitGroup
		stopped atomic.Bool
	)
	for i, r := range requests {
		results[i] = notSent(r)
		release, err := e.limits.acquire(ctx, node, r)
		if err != nil {
			continue // the process ends
		}
		if stopped.Load() {
			release()
			continue
		}
		sent.Go(func() {
			defer release()
			var timedOut bool
			if results[i], timedOut = send(ctx, c, now, r.Verdict); timedOut {
				stopped.Store(true)
			}
		})
	}
	sent.Wait()
	return results
}

// notSent is the result of a request that the pass did not send.
func notSent(r Request) Result {
	result := Result{Verdict: r.Verdict, Reason: reasonFailed, Cause: v1beta1.PodReasonEvictionFailed, RetryAfter: retryNotSent}
	if r.TimedOut { // it stays behind those that have not timed out
		result.Reason, result.Cause = reasonTimedOut, v1beta1.PodReasonEvictionTimedOut
	}
	return result
}

// send sends one request.
func send(ctx context.Context, c client.Client, now time.Time, v drain.Verdict) (r Result, timedOut bool) {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var answer mutate.Answer
	r.Verdict = v
	switch v.Step {
	case drain.StepDelete:
		answer, r.Err = mutate.Disrupt(limited, c, v.Pod, v.GraceSeconds, v.Reason, now)
	case drain.StepSurge:
		answer, r.Err = mutate.Surge(limited, c, v.Pod, now, v.Origin.Seen)
	default:
		answer, r.Err = mutate.Evict(limited, c, v.Pod, v.GraceSeconds)
	}
	timedOut = r.Err != nil && limited.Err() != nil && ctx.Err() == nil
	if r.Err != nil {
		r.RetryAfter = RetryRefused
	}
	switch {
	case answer.Asked:
		r.Evicted = true
	case timedOut:
		r.Reason, r.Cause, r.Busy = reasonTimedOut, v1beta1.PodReasonEvictionTimedOut, true
	case answer.Refused != "":
		r.Reason, r.Refused = "the API server refused its "+requestNames[v.Step]+": "+answer.Refused, true
		r.Cause, r.RetryAfter = v1beta1.PodReasonEvictionRefused, RetryRefused
	default:
		if answer.RetryAfter > 0 {
			r.Busy, r.RetryAfter = true, answer.RetryAfter
		}
		if v.Step != drain.StepSurge {
			r.Reason, r.Cause = reasonFailed, v1beta1.PodReasonEvictionFailed
		}
	}
	return r, timedOut
}

// requestNames name the requests of the steps.
var requestNames = map[drain.Step]string{
	drain.StepEvict: "eviction", drain.StepDelete: "deletion", drain.StepSurge: "change of labels",
}
