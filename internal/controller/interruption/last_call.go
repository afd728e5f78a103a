package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// conflictWait is for how long a last call waits for the cache where the Interruption has changed: a
// newer version of it may withdraw the notice.
const conflictWait = 2 * time.Second

// evictAtLastCall evicts the pods whose last call has come, where a step before the evictions failed or
// waits: a cordon, the barrier, the record, a replacement or a hook protects pods, and must not cost them
// their grace. Approvals, windows and slots are decisions, which facts.drainsNow knows; a slot never holds
// a firm deadline.
func (p *pass) evictAtLastCall(ctx context.Context) error {
	if p.reachedEvictions || !p.drains || p.plan.Empty() || !p.facts.drainsNow(p.decision) || !p.facts.now.Before(p.end()) || p.isDone() {
		return nil
	}
	p.outcome.requeueAt(p.nextLastCall())
	due := atLastCall(p.due(), p.facts.now)
	if len(due) == 0 {
		return nil
	}
	p.sentAtLastCall = true
	return p.evict(ctx, due)
}

// nextLastCall is the next last call of a pod that has not been asked to leave; zero: there is none.
func (p *pass) nextLastCall() time.Time {
	var next time.Time
	for _, v := range p.plan.Verdicts {
		at := v.LastCall
		if !at.IsZero() && p.isOverdue(v) {
			at = p.facts.now.Add(maxBackoff) // no failure of anything else makes it wait longer
		}
		if at.After(p.facts.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// isOverdue reports whether the last call of a pod has come, and no request for it was accepted. Once the
// instance has outlived its deadline, nothing is urgent.
func (p *pass) isOverdue(v drain.Verdict) bool {
	asks := v.Step == drain.StepEvict || v.Step == drain.StepDelete || v.Step == drain.StepSurge
	return asks && p.facts.now.Before(p.end()) && !p.facts.now.Before(v.LastCall) &&
		!slices.ContainsFunc(p.outcome.Evicted, func(sent drain.Verdict) bool { return sent.Pod.UID == v.Pod.UID })
}

// nextDate is when a pass that failed tries again at the latest: at the next last call of a pod, when the
// instance may be ended, and when the record ends.
func (p *pass) nextDate() time.Time {
	next := p.nextLastCall()
	for _, at := range []time.Time{replacement.HandoverAt(p.decision.Deadline, p.Margin), p.end()} {
		if at.After(p.facts.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// atLastCall returns the requests for pods whose last call has come.
func atLastCall(requests []evict.Request, now time.Time) []evict.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r evict.Request) bool {
		return r.Verdict.LastCall.IsZero() || now.Before(r.Verdict.LastCall)
	})
}

// unrecorded returns the requests that are sent although the record could not be written.
func (p *pass) unrecorded(ctx context.Context, failed error, requests []evict.Request) []evict.Request {
	switch {
	case ctx.Err() != nil, apierrors.IsNotFound(failed): // a person who deletes an Interruption cancels it
		return nil
	case apierrors.IsConflict(failed):
		return atLastCall(requests, p.facts.now.Add(-conflictWait))
	}
	return atLastCall(requests, p.facts.now)
}

// sendUnrecorded sends requests whose results may never be written. It deletes a pod at once whose
// eviction is refused: otherwise the record remembers the refusal, and the next pass deletes the pod.
func (c *Controller) sendUnrecorded(ctx context.Context, now time.Time, requests []evict.Request) []evict.Result {
	results := c.evictor.Send(ctx, c.Client, now, requests)
	var again []evict.Request
	results = slices.DeleteFunc(results, func(r evict.Result) bool {
		if !r.Refused || r.Verdict.Step != drain.StepEvict {
			return false
		}
		r.Verdict.Step, r.Verdict.Overrides = drain.StepDelete, "refused eviction"
		r.Verdict.Reason = "deleted at its last call: " + r.Reason
		again = append(again, evict.Request{Verdict: r.Verdict})
		return true
	})
	results = append(results, c.evictor.Send(ctx, c.Client, now, again)...)
	for _, r := range results {
		if r.Evicted {
			log.FromContext(ctx).Info("evicted a pod at its last call that the record does not show", "namespace", r.Verdict.Pod.Namespace, "pod", r.Verdict.Pod.Name, "reason", r.Verdict.Reason)
		}
	}
	return results
}

// evictAsRecorded evicts the pods whose last call has come where a pass cannot read what a decision
// needs. The decision and the list of pods that an earlier pass wrote are enough.
func (c *Controller) evictAsRecorded(ctx context.Context, in *v1beta1.Interruption, now time.Time) error {
	s := &in.Status
	standing := notice.Deadline(notice.Unanswered(in.Spec.Notices, notice.Handled(s)))
	if c.Observe || s.CompletionTime != nil || s.Decision == nil || !record.Drains(s.Decision.Action) || standing == nil ||
		!notice.IsFirm(s.Deadline) || !now.Before(s.Deadline.Time.Add(notice.AfterDeadline)) ||
		meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionPaused) {
		return nil
	}
	f := &facts{now: now, in: in, was: *s, nodeName: s.NodeName}
	f.pods, f.podsKnown, _ = c.Pods.Pods(ctx, f.nodeName)
	p := &pass{Controller: c, facts: f}
	p.plan = drain.NewPlan(drain.Facts{Now: now, Deadline: s.Deadline, Margin: c.Margin, Pods: f.withLastCall(), Refused: f.refused()})
	var errs []error
	for _, r := range c.sendUnrecorded(ctx, now, atLastCall(p.due(), now)) {
		if r.Evicted {
			p.outcome.Evicted = append(p.outcome.Evicted, r.Verdict)
			continue
		}
		errs = append(errs, fmt.Errorf("evicting pod %s/%s: %s: %w", r.Verdict.Pod.Namespace, r.Verdict.Pod.Name, r.Reason, r.Err))
	}
	c.backoff.setUnderway(in.Name, true, p.nextLastCall())
	return errors.Join(errs...)
}

// withLastCall returns the pods that the status lists with a last call: policy lets no other leave.
func (f *facts) withLastCall() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(f.pods), func(pod *corev1.Pod) bool {
		return !slices.ContainsFunc(record.Pending(f.drain()), func(left v1beta1.PodStatus) bool {
			return left.UID == pod.UID && left.LastCallTime != nil
		})
	})
}
