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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/capacity"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/concurrency"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// PodSource knows the pods of a node; podwatch.Watcher is one.
type PodSource interface {
	// Pods returns the pods bound to a node and whether all are known.
	Pods(ctx context.Context, node string) ([]*corev1.Pod, bool, error)
	// Await returns once the pods of a node are known, or ctx is done. Pods was called for
	// the node before.
	Await(ctx context.Context, node string)
	// Current reports whether the watch of a node's pods is open.
	Current(node string) bool
	// Forget ends the watch of a node's pods.
	Forget(node string)
}

// NodeIndex finds the node of an instance; nil: it has none.
type NodeIndex interface {
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

// OwnerSource knows the owners of the pods of a node; ownerwatch.Watcher is one.
type OwnerSource interface {
	// Owners returns the owners of the pods and the volume claims that they mount, and
	// whether all are known.
	Owners(ctx context.Context, node string, pods []*corev1.Pod) (drain.Owners, bool, error)
	// Forget ends the watches for a node.
	Forget(node string)
}

// HookRunner runs the hooks of policies; runner.Runner is one.
type HookRunner interface {
	// Hooks takes the hooks of an Interruption one step further.
	Hooks(context.Context, runner.HookRun) (runner.HookOutcome, error)
}

// Options are what the controller needs. Live, Owners, HookRunner, Cloud, Claims, Groups and
// Lifecycle may be nil. Without them no pod is surged, no hook runs, no notification is
// sent, no instance is terminated, and Karpenter or Auto Scaling is left alone.
type Options struct {
	Client client.Client
	// Live reads past the cache.
	Live       client.Reader
	Nodes      NodeIndex
	Pods       PodSource
	Owners     OwnerSource
	HookRunner HookRunner
	Cloud      cloud.Cloud
	Claims     capacity.ClaimSource
	// Groups knows Auto Scaling groups. Lifecycle completes their lifecycle hooks and
	// takes instances out of them.
	Groups    GroupSource
	Lifecycle cloud.Lifecycle
	// Hooks are patterns of the names of lifecycle hooks to complete, such as lifeboat-*,
	// in addition to those that NodeGroups name.
	Hooks []string
	// GroupChanges yields the names of groups that changed; nil: they are only polled.
	GroupChanges <-chan event.TypedGenericEvent[string]
	// Forward puts a message on Karpenter's own queue; nil: Lifeboat does not feed it.
	Forward func(ctx context.Context, message string) error
	// Place is where the cluster is on AWS.
	Place   replacement.Place
	Events  events.EventRecorder
	Metrics *status.Metrics
	// Clock returns the time; a pass reads it once.
	Clock func() time.Time
	// Margin is kept between the last call of a pod and a hard deadline.
	Margin time.Duration
	// FlushInterval is how long a transitional change of the status may stay unwritten
	// after the last write; zero: every change is written at once.
	FlushInterval time.Duration
	// TTL is how long a finished Interruption is kept.
	TTL time.Duration
}

// Controller reconciles Interruptions.
type Controller struct {
	Options
	barrier cordonBarrier
	// records and nodeWrites are the expectations for Interruptions and for Nodes.
	records, nodeWrites expectations
	slots               concurrency.Slots
	capacity            capacity.Memory
	ownerReads          ownerReads
	evictor             *evict.Evictor
}

// New returns the controller.
func New(o Options) *Controller {
	return &Controller{Options: o, evictor: evict.New()}
}

// Reconcile moves one Interruption one step closer to done.
func (c *Controller) Reconcile(ctx context.Context, in *v1alpha1.Interruption) (result reconcile.Result, err error) {
	if !in.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	now := c.Clock()
	if c.records.isStale(in.Name, in.ResourceVersion, now) {
		return reconcile.Result{RequeueAfter: staleCacheRequeue}, nil // the watch enqueues it earlier
	}
	if notice.Finished(in) {
		c.forgetFinished(ctx, in)
		return c.expire(ctx, in, now)
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("node", in.Spec.NodeName))

	update := status.NewUpdate(in, now)
	defer func() { result, err = c.finishPass(ctx, update, result, err) }()

	facts, err := c.observe(ctx, in, now)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observing: %w", err)
	}
	decision, ok := policy.Decide(facts.forPolicy())
	if !ok {
		if facts.isUntrusted() {
			update.SetUntrusted(facts.node)
		}
		return reconcile.Result{}, nil
	}
	decision = forceDrainDetached(facts, decision)
	if err := c.observePods(ctx, facts, decision); err != nil {
		return reconcile.Result{}, fmt.Errorf("observing the pods: %w", err)
	}
	p := &pass{Controller: c, facts: facts, decision: decision, update: update}
	p.plan = drain.NewPlan(facts.forDrain(decision, c.Margin))
	update.SetDecision(status.Pass{
		Interruption: in, Node: facts.node, NodeName: facts.nodeName, Decision: decision,
		Rescheduled: facts.isRescheduled(decision), Pods: p.pods(),
	})
	return p.run(ctx)
}

// writer returns what writes the status.
func (c *Controller) writer() *status.Writer {
	return &status.Writer{Client: c.Client, Events: c.Events, Metrics: c.Metrics, Expectations: &c.records, FlushInterval: c.FlushInterval}
}

// finishPass writes the status and returns the result of the pass.
func (c *Controller) finishPass(ctx context.Context, u *status.Update, result reconcile.Result, err error) (reconcile.Result, error) {
	flushAt, failed := c.writer().Finish(ctx, u)
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

// run walks the steps.
func (p *pass) run(ctx context.Context) (reconcile.Result, error) {
	err := p.act(ctx)
	switch {
	case apierrors.IsConflict(err): // the cache is stale: the next pass finds the same again
		p.update.Discard()
		return reconcile.Result{RequeueAfter: requeueCache}, nil
	case err != nil:
		return reconcile.Result{}, err // the queue backs off
	case p.outcome.skipWrite:
		p.update.Discard()
	}
	priority := record.Priority(p.facts.in)
	result := requeueAt(p.facts.now, p.outcome.requeue)
	result.Priority = &priority
	return result, nil
}

// forgetFinished frees the memory for an Interruption that is finished. It keeps the pod
// watch where another Interruption has a node of the same name.
func (c *Controller) forgetFinished(ctx context.Context, in *v1alpha1.Interruption) {
	c.barrier.forget(in.Name)
	if node := in.Status.NodeName; len(c.ofNodeName(ctx, node)) == 0 {
		c.forget(node)
	}
}

// expire deletes a finished Interruption after its TTL.
func (c *Controller) expire(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (reconcile.Result, error) {
	if left := in.Status.CompletionTime.Add(c.TTL).Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	// The resource version protects a notice that has just been added.
	err := c.Client.Delete(ctx, in, client.Preconditions{UID: &in.UID, ResourceVersion: &in.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("deleting the finished Interruption: %w", err)
	}
	c.records.forget(in.Name)
	return reconcile.Result{}, nil
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
