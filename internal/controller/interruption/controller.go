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

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/errand"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// PodSource knows the pods of a node; podwatch.Watcher is one.
type PodSource interface {
	// Pods returns the pods bound to a node and whether all are known.
	Pods(ctx context.Context, node string) ([]*corev1.Pod, bool, error)
	// Await returns once the pods of a node that was asked about are known, or
	// ctx is done.
	Await(ctx context.Context, node string)
	// Current reports whether the watch of a node's pods is open, so that no change
	// stays unseen.
	Current(node string) bool
	// Forget says that a node is of no more interest.
	Forget(node string)
}

// NodeIndex finds the node that an instance is; nil where there is none.
type NodeIndex interface {
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

// OwnerSource knows what controls the pods of a node; ownerwatch.Watcher is one.
type OwnerSource interface {
	// Owners returns what controls the pods, and the volume claims that they
	// mount, and whether all are known.
	Owners(ctx context.Context, node string, pods []*corev1.Pod) (drain.Owners, bool, error)
	// Forget says that a node is of no more interest.
	Forget(node string)
}

// Errands runs hooks and delivers notifications; errand.Runner is one.
type Errands interface {
	// Hooks takes the hooks of a record one step further.
	Hooks(context.Context, errand.HookRun) (errand.HookOutcome, error)
	// Tell takes its notifications one step further.
	Notify(context.Context, errand.NotifyRequest) (errand.NotifyResult, error)
}

// Options are what the loop needs. Live, Owners, Errands, Cloud, Claims, Groups and
// Lifecycle may be nil: without them nothing is surged, no hook runs, nobody is
// notified, no instance is terminated, and Karpenter, or Auto Scaling, is left
// alone.
type Options struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Nodes   NodeIndex
	Pods    PodSource
	Owners  OwnerSource
	Errands Errands
	Cloud   cloud.Cloud
	Claims  ClaimSource
	// Groups knows Auto Scaling groups, and Lifecycle answers their lifecycle hooks
	// and takes instances out of them.
	Groups    GroupSource
	Lifecycle cloud.Lifecycle
	// Hooks are patterns of the names of lifecycle hooks that are answered, such as
	// lifeboat-*, besides those that NodeGroups name.
	Hooks []string
	// GroupChanges yields the names of groups in which something has changed; nil:
	// they are looked at by the clock alone.
	GroupChanges <-chan event.TypedGenericEvent[string]
	// Forward puts a message on Karpenter's own queue; nil: it has none that is
	// fed by Lifeboat.
	Forward func(ctx context.Context, message string) error
	// Place is where the cluster is on AWS.
	Place   replacement.Place
	Events  events.EventRecorder
	Metrics *Metrics
	// Clock tells the time; it is read once a pass.
	Clock func() time.Time
	// Margin is kept between a pod's last moment and a hard deadline.
	Margin time.Duration
	// FlushInterval is how long a transitional change of the status may stay unwritten
	// after the last write; zero: every change is written at once.
	FlushInterval time.Duration
	// TTL is how long a finished record is kept.
	TTL time.Duration
}

// Controller reconciles Interruptions.
type Controller struct {
	Options
	barrier cordonBarrier
	// records and nodeWrites are the expectations for Interruptions and for Nodes.
	records, nodeWrites expectations
	berths              berths
	yard                yard
	reading             reading
	pools               poolCache
	// evictionSlots bounds the requests in flight that stop pods; slowSlots bounds
	// those for pods whose last request timed out.
	evictionSlots, slowSlots *semaphore.Weighted
}

// New returns the controller.
func New(o Options) *Controller {
	return &Controller{Options: o, evictionSlots: semaphore.NewWeighted(maxEvictions), slowSlots: semaphore.NewWeighted(maxSlowEvictions)}
}

// Reconcile moves one Interruption one step closer to done.
func (c *Controller) Reconcile(ctx context.Context, in *v1alpha1.Interruption) (result reconcile.Result, err error) {
	if !in.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	now := c.Clock()
	if c.records.isStale(in.Name, in.ResourceVersion, now) {
		return reconcile.Result{RequeueAfter: staleCacheRequeue}, nil // the watch enqueues it sooner
	}
	if notice.Finished(in) {
		c.forgetFinished(ctx, in)
		return c.finish(ctx, in, now)
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("node", in.Spec.NodeName))

	report := begin(in, now)
	defer func() { result, err = c.end(ctx, report, result, err) }()

	facts, err := c.observe(ctx, in, now)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observing: %w", err)
	}
	decision, ok := policy.Decide(facts.forPolicy())
	if !ok {
		report.untrusted(facts)
		return reconcile.Result{}, nil
	}
	decision = goesOn(facts, decision)
	if err := c.observePods(ctx, facts, decision); err != nil {
		return reconcile.Result{}, fmt.Errorf("observing the pods: %w", err)
	}
	plan := drain.NewPlan(facts.forDrain(decision, c.Margin))
	report.decided(facts, decision, plan)

	return c.carry(ctx, report)
}

// end writes the status and returns the result of the pass.
func (c *Controller) end(ctx context.Context, r *report, result reconcile.Result, err error) (reconcile.Result, error) {
	flushAt, failed := c.close(ctx, r)
	switch {
	case apierrors.IsConflict(failed) && (err == nil || apierrors.IsConflict(err)):
		return reconcile.Result{RequeueAfter: lookAgain}, nil // stale cache, or a notice joined
	case failed != nil && !apierrors.IsNotFound(failed): // a person who deletes an Interruption cancels it
		return reconcile.Result{}, errors.Join(err, failed)
	}
	if !flushAt.IsZero() && err == nil {
		result = sooner(result, wake(r.now, flushAt))
	}
	return result, err
}

// carry acts on the plan and puts the outcome into the report.
func (c *Controller) carry(ctx context.Context, r *report) (reconcile.Result, error) {
	outcome, err := c.act(ctx, r.seen, r)
	r.reached(outcome)
	switch {
	case apierrors.IsConflict(err): // stale cache: the next pass finds it all again
		r.drop()
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return reconcile.Result{}, err // the queue backs off
	case outcome.quiet:
		r.drop()
	}
	told, err := c.tell(ctx, r, r.seen.decision)
	outcome.sooner(told.Wake)
	rank := priorityOf(r.seen.facts.in)
	result := wake(r.now, outcome.wake)
	result.Priority = &rank
	return result, err
}

// forgetFinished frees what this process keeps for an Interruption that is finished.
// It keeps the pod watch where another Interruption has a node of the same name.
func (c *Controller) forgetFinished(ctx context.Context, in *v1alpha1.Interruption) {
	c.barrier.forget(in.Name)
	if node := in.Status.NodeName; len(c.ofNodeName(ctx, node)) == 0 {
		c.forget(node)
	}
}

// finish sends the last notifications of a finished record, and deletes it once it
// has been kept long enough.
func (c *Controller) finish(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (reconcile.Result, error) {
	told, err := c.tellOfFinished(ctx, in, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, err := c.expire(ctx, in, now)
	if at := told.Wake; !at.IsZero() && err == nil {
		result = sooner(result, wake(now, at))
	}
	return result, err
}

// expire deletes a finished record once it has been kept long enough.
func (c *Controller) expire(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (reconcile.Result, error) {
	if left := in.Status.CompletionTime.Add(c.TTL).Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	// A notice may have joined a moment ago; the resource version tells.
	err := c.Client.Delete(ctx, in, client.Preconditions{UID: &in.UID, ResourceVersion: &in.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("deleting the finished Interruption: %w", err)
	}
	c.records.forget(in.Name)
	return reconcile.Result{}, nil
}

// sooner is the earlier of two results; a zero RequeueAfter means never.
func sooner(a, b reconcile.Result) reconcile.Result {
	if a.RequeueAfter == 0 || (b.RequeueAfter > 0 && b.RequeueAfter < a.RequeueAfter) {
		a.RequeueAfter = b.RequeueAfter
	}
	return a
}

// wake turns a moment into a result; the zero time means nothing but changes
// are waited for.
func wake(now, at time.Time) reconcile.Result {
	if at.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}
