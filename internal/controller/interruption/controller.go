// Package interruption reconciles Interruptions: observe, decide, plan, act, write
// the status. What it keeps in memory between passes is best effort and recomputed
// after a restart: the cordon barrier, expectations and reservations. The process
// can be killed at any line.
package interruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/capacity"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/concurrency"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Controller reconciles Interruptions.
type Controller struct {
	Options
	barrier cordonBarrier
	// records and nodeWrites are the expectations for Interruptions and for Nodes.
	records, nodeWrites expectations
	slots               concurrency.Slots
	capacity            capacity.Memory
	// ownerReads and podReads are since when the owners and the pods of nodes are read.
	ownerReads, podReads pendingReads
	verdicts             verdicts
	missing              missingNodes
	evictor              *evict.Evictor
	backoff              *backoff
	refusals             refusals
	departures           departures
}

// New returns the controller.
func New(o Options) *Controller {
	o.Client = writes.Observe(o.Client, o.Metrics.WriteRefused)
	return &Controller{Options: o, evictor: evict.New(), backoff: newBackoff(o.Clock)}
}

// Reconcile moves one Interruption one step closer to done.
func (c *Controller) Reconcile(ctx context.Context, in *v1beta1.Interruption) (result reconcile.Result, err error) {
	if !in.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	now := c.Clock()
	if c.records.isStale(in.Name, in.ResourceVersion, now) {
		return reconcile.Result{RequeueAfter: requeueCache}, nil // the watch enqueues it earlier
	}
	if notice.Finished(in) {
		c.forgetFinished(ctx, in)
		return c.expire(ctx, in, now)
	}
	if wait := c.backoff.leftOfEvent(in.Name, in.Generation); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("node", in.Spec.NodeName))

	ctx, written := writes.Collect(ctx)
	update := status.NewUpdate(in, now)
	defer func() { result, err = c.finishPass(ctx, update, written, result, err) }()

	facts, err := c.observe(ctx, in, now)
	if err != nil {
		return reconcile.Result{}, errors.Join(fmt.Errorf("observing: %w", err), c.evictAsRecorded(ctx, in, now))
	}
	if facts.conflict != nil {
		update.SetConflict(facts.conflict)
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	}
	if facts.staleNodes {
		return reconcile.Result{RequeueAfter: requeueCache}, nil
	}
	decision, ok := facts.decide(c.Observe)
	if !ok {
		return undecided(update, facts), nil
	}
	c.observePods(ctx, facts, decision)
	p := &pass{Controller: c, facts: facts, decision: decision, update: update}
	p.plan = drain.NewPlan(facts.forDrain(decision, &c.Options))
	update.SetDecision(status.Pass{
		Interruption: in, Node: facts.node, NodeName: facts.nodeName, Decision: decision,
		Postponed: facts.isPostponed(decision), Pods: p.pods(),
	})
	return p.run(ctx)
}

// writer returns what writes the status.
func (c *Controller) writer() *status.Writer {
	return &status.Writer{Client: c.Client, Events: c.Events, Metrics: c.Metrics, Expectations: &c.records, FlushInterval: c.FlushInterval}
}

// finishPass writes the status and returns the result of the pass.
func (c *Controller) finishPass(ctx context.Context, u *status.Update, written *writes.Log, result reconcile.Result, err error) (reconcile.Result, error) {
	u.SetRefused(written)
	flushAt, failed := c.writer().Finish(ctx, u)
	c.reportRefused(u, written)
	c.pace(u.Object(), written, errors.Join(err, failed))
	switch {
	case apierrors.IsConflict(failed) && (err == nil || apierrors.IsConflict(err)):
		return reconcile.Result{RequeueAfter: requeueCache}, nil // the cache is stale, or a notice was added
	case failed != nil && !apierrors.IsNotFound(failed): // a person who deletes an Interruption cancels it
		return reconcile.Result{}, errors.Join(err, failed)
	}
	if !flushAt.IsZero() && err == nil {
		result = sooner(result, requeueAt(u.Now(), flushAt))
	}
	return result, err
}

// pace makes the passes of an Interruption wait that fail, or whose writes to the node or the record are
// refused for good.
func (c *Controller) pace(in *v1beta1.Interruption, written *writes.Log, err error) {
	fails := err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err)
	for _, r := range written.Refused() {
		fails = fails || r.Kind == writes.Node || r.Kind == writes.Interruption
	}
	if fails {
		c.backoff.failed(in.Name, in.Generation)
	} else {
		c.backoff.succeeded(in.Name)
	}
}

// run walks the steps.
func (p *pass) run(ctx context.Context) (reconcile.Result, error) {
	err := errors.Join(p.act(ctx), p.facts.incomplete)
	p.backoff.setUnderway(p.facts.in.Name, p.drains && p.facts.drainsNow(p.decision), p.nextDate())
	switch {
	case apierrors.IsConflict(err): // the cache is stale: the next pass finds the same again
		if !p.sentAtLastCall {
			p.update.Discard()
		}
		return reconcile.Result{RequeueAfter: requeueCache}, nil
	case err != nil:
		return reconcile.Result{}, err // the queue backs off
	case p.outcome.skipWrite && !p.sentAtLastCall:
		p.update.Discard()
	}
	priority := record.Priority(p.facts.in, p.facts.node != nil)
	result := requeueAt(p.facts.now, p.outcome.requeue)
	result.Priority = &priority
	return result, nil
}

// sooner is the earlier of two results; a zero RequeueAfter means none.
func sooner(a, b reconcile.Result) reconcile.Result {
	if a.RequeueAfter == 0 || (b.RequeueAfter > 0 && b.RequeueAfter < a.RequeueAfter) {
		a.RequeueAfter = b.RequeueAfter
	}
	return a
}

// requeueAt turns a time into a result; the zero time: only changes trigger a pass.
func requeueAt(now, at time.Time) reconcile.Result {
	if at.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}
