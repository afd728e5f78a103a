package interruption

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// podListRequeue is when to look again whether the pods of a node are listed, in case
	// the notification of the pod watch is lost.
	podListRequeue = 5 * time.Second
	// podListWait is how long a pass waits for the list of the pods. Another pass would
	// repeat everything before this step.
	podListWait = 50 * time.Millisecond
)

// awaitPodList waits until the pods of the node are listed.
func awaitPodList(ctx context.Context, p *pass) (bool, error) {
	if !p.facts.podsKnown {
		limited, cancel := context.WithTimeout(ctx, podListWait)
		p.Pods.Await(limited, p.facts.nodeName)
		cancel()
		p.replan(ctx)
	}
	if !p.facts.podsKnown {
		if !p.facts.now.Before(p.end()) { // the list may never come
			return false, p.walk(ctx, []step{terminateDetached, awaitInstanceGone, restoreNode, complete})
		}
		p.outcome.skipWrite = notice.IsFirm(p.decision.Deadline) && p.facts.now.Sub(p.decision.Notice.ReceivedTime.Time) < barrierTimeout
		p.outcome.wait(p.facts.now.Add(podListRequeue), "waits for the list of the node's pods")
		return false, nil
	}
	return true, nil
}

// replan reads the pods again and plans again.
func (p *pass) replan(ctx context.Context) {
	p.observePods(ctx, p.facts, p.decision)
	p.plan = drain.NewPlan(p.facts.forDrain(p.decision, &p.Options))
	p.update.SetPods(p.pods())
}

// pods is what the status says about the pods.
func (p *pass) pods() status.Pods {
	if p.facts.podsKnown && p.goneAt == nil {
		p.goneAt = p.departures.watch(p.facts.in.Name, p.facts.now)
	}
	return status.Pods{Plan: p.plan, Known: p.facts.podsKnown, GoneAt: p.goneAt, Gates: p.facts.gates, Replacement: p.facts.replacement.Status}
}

// evictPods carries the plan out and waits until no pod is left, or the interruption
// ends. Before Lifeboat or Karpenter evicts a pod, the status lists all of them: a pod
// that is gone before it was listed could not be accounted for.
func evictPods(ctx context.Context, p *pass) (bool, error) {
	p.reachedEvictions = true
	if p.plan.Empty() {
		if node := p.facts.node; node != nil && !p.facts.podsLive && !p.Pods.Current(node.Name) { // a pod may have come since they were listed
			p.outcome.wait(p.facts.now.Add(requeueCache), "waits for the watch of the node's pods")
			return false, nil
		}
		p.outcome.Drained = true
		return true, nil
	}
	end := p.end()
	if !p.facts.now.Before(end) || p.isDone() {
		p.outcome.Abandoned = p.isAbandoned()
		return true, nil // the node lives, or its instance ends with the pods that are left
	}
	p.requeueForDrain(end)
	if err := p.evict(ctx, p.due()); err != nil {
		return false, err
	}
	_, err := handOver(ctx, p)
	return false, err
}

// requeueForDrain requests passes for the times at which the plan changes.
func (p *pass) requeueForDrain(end time.Time) {
	if p.decision.Action == v1beta1.ActionTerminate {
		p.outcome.requeueAt(futureOnly(replacement.HandoverAt(p.decision.Deadline, p.Margin), p.facts.now))
	}
	p.outcome.requeueAt(p.plan.WakeAt)
	p.outcome.requeueAt(end)
	p.outcome.requeueAt(futureOnly(p.decision.NotBefore, p.facts.now)) // a drain that began earlier: its deadline is soft until then
	if d := p.decision.Deadline; d != nil && d.Type == v1beta1.DeadlineSoft {
		p.outcome.requeueAt(futureOnly(d.Time.Add(-policy.Lead), p.facts.now)) // the deadline is hard from then on, and pods have a last call
	}
}

// futureOnly returns a time if it is in the future, else zero.
func futureOnly(at, now time.Time) time.Time {
	if at.After(now) {
		return at
	}
	return time.Time{}
}

// evict carries out verdicts. A pod that cannot be evicted is retried and holds up neither the
// other pods nor their last calls. Where the record cannot be written, only pods at their last
// call are evicted.
func (p *pass) evict(ctx context.Context, requests []evict.Request) error {
	unlisted := p.listPods(ctx, requests)
	var results []evict.Result
	if unlisted != nil {
		p.update.RevertEvicted()
		results = p.sendUnrecorded(ctx, p.facts.now, p.unrecorded(ctx, unlisted, requests))
	} else {
		results = p.evictor.Send(ctx, p.Client, p.facts.now, requests)
	}
	for _, r := range results {
		p.evicted(ctx, r)
	}
	return errors.Join(unlisted, ctx.Err())
}

// due returns the verdicts to carry out now; pods whose last request timed out come
// last.
func (p *pass) due() []evict.Request {
	var requests, slow []evict.Request
	for _, v := range p.plan.Verdicts {
		until := status.EvictedUntil(p.facts.drain(), v.Pod.UID)
		switch {
		case v.Step != drain.StepEvict && v.Step != drain.StepDelete && v.Step != drain.StepSurge:
		case until.After(p.facts.now): // the cache is stale
			p.outcome.requeueAt(until)
		case p.backsOff(v):
		case p.facts.timedOut(v.Pod):
			slow = append(slow, evict.Request{Verdict: v, TimedOut: true})
		default:
			requests = append(requests, evict.Request{Verdict: v})
		}
	}
	return append(requests, slow...)
}

// backsOff reports whether the request for a pod failed so often that the next one waits.
func (p *pass) backsOff(v drain.Verdict) bool {
	at, cause, why := p.backoff.waitsFor(p.facts.in.Name, v.Pod.UID, v.LastCall)
	if at.IsZero() {
		return false
	}
	p.outcome.requeueAt(at)
	if why != "" {
		p.outcome.Refuse(v.Pod.UID, cause, why)
	}
	return true
}

// timedOut reports whether the last request to evict a pod timed out.
func (f *facts) timedOut(pod *corev1.Pod) bool {
	return slices.ContainsFunc(record.Pending(f.drain()), func(left v1beta1.PodStatus) bool {
		return left.UID == pod.UID && left.State == v1beta1.PodRefused && left.Reason == v1beta1.PodReasonEvictionTimedOut
	})
}

// listPods writes the list of the pods that have to leave before the first of them is
// evicted. The same write says which pods are evicted now. The end of the pass, or the
// next pass after a crash, corrects what failed.
func (p *pass) listPods(ctx context.Context, requests []evict.Request) error {
	verdicts := make([]drain.Verdict, len(requests))
	for i, r := range requests {
		verdicts[i] = r.Verdict
	}
	if !p.update.MarkEvicted(verdicts) && !p.hasUnlistedPod() {
		return nil
	}
	return p.Checkpoint(ctx)
}

// hasUnlistedPod reports whether the written status lacks a pod that has to leave.
func (p *pass) hasUnlistedPod() bool {
	known := map[types.UID]bool{}
	for _, left := range record.Pending(p.facts.drain()) {
		known[left.UID] = true
	}
	left := p.plan.Left()
	return slices.ContainsFunc(left[:min(len(left), status.MaxPods)], func(v drain.Verdict) bool { return !known[v.Pod.UID] })
}

// evicted notes the result of a request.
func (p *pass) evicted(ctx context.Context, r evict.Result) {
	p.backoff.notePod(p.facts.in.Name, r)
	switch {
	case r.Evicted:
		p.outcome.Evicted = append(p.outcome.Evicted, r.Verdict)
		return
	case r.Refused:
		p.Metrics.Refused()
	case r.Busy:
		p.Metrics.Busy()
	}
	if r.Reason != "" {
		p.outcome.Refuse(r.Verdict.Pod.UID, r.Cause, r.Reason)
	}
	if r.RetryAfter > 0 {
		p.outcome.requeueAt(p.facts.now.Add(r.RetryAfter))
	}
	if r.Err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(r.Err, "evicting a pod")
	}
}
