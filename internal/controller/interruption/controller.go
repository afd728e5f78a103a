// Package interruption is the loop that moves one Interruption one step
// closer to done: observe, decide, plan, act, report. Nothing is remembered
// between passes but what the record's status says, so that it can be killed
// at any line.
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
	// Current reports whether what changes among the pods of a node is being told. If
	// not, it is soon.
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
	Tell(context.Context, errand.Telling) (errand.Told, error)
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
	Place  replacement.Place
	Events events.EventRecorder
	// Leads reports whether this process is the one that acts on nodes; nil: it is.
	Leads func() bool
	// Busy is called when a node is marked or pods are asked to stop, and what it
	// returns when that is done; it may be nil.
	Busy func() (done func())
	// Calm returns a channel that is closed once it is calm enough for what has time; nil:
	// it always is.
	Calm    func() <-chan struct{}
	Metrics *Metrics
	// Clock tells the time; it is read once a pass.
	Clock func() time.Time
	// Margin is kept between a pod's last moment and a hard deadline.
	Margin time.Duration
	// TTL is how long a finished record is kept.
	TTL time.Duration
}

// Controller reconciles Interruptions.
type Controller struct {
	Options
	muster  muster
	berths  berths
	written written
	late    late
	taken   taken
	yard    yard
	reading reading
	asking  *semaphore.Weighted // a place for each request to stop a pod
	// mustered has a value once those who waited for what a rush may bring need not.
	mustered chan event.TypedGenericEvent[string]
}

// New returns the loop.
func New(o Options) *Controller {
	if o.Busy == nil {
		o.Busy = func() func() { return func() {} }
	}
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	return &Controller{Options: o, asking: semaphore.NewWeighted(inFlight), mustered: make(chan event.TypedGenericEvent[string], 1), late: late{came: make(chan struct{}, 1)}}
}

// Reconcile moves one interruption one step closer to done.
func (c *Controller) Reconcile(ctx context.Context, in *v1alpha1.Interruption) (result reconcile.Result, err error) {
	if !in.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	now := c.Clock()
	if r := c.late.take(in.Name); r != nil {
		return reconcile.Result{RequeueAfter: cacheBehind}, c.writeLate(ctx, r) // what it says comes first
	}
	if c.written.isOld(in.Name, in.ResourceVersion, now) {
		return reconcile.Result{RequeueAfter: cacheBehind}, nil // the watch wakes it sooner
	}
	if notice.Finished(in) {
		c.forget(in.Status.NodeName)
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
	decision = goesOn(facts.was.Replacement, decision, now)
	if err := c.observePods(ctx, facts, decision); err != nil {
		return reconcile.Result{}, fmt.Errorf("observing the pods: %w", err)
	}
	plan := drain.NewPlan(facts.forDrain(decision, c.Margin))
	report.decided(facts, decision, plan)

	return c.carry(ctx, report)
}

// end writes what a pass has found, or holds it back where that has time, and returns what
// the pass comes to.
func (c *Controller) end(ctx context.Context, r *report, result reconcile.Result, err error) (reconcile.Result, error) {
	if err == nil && r.hasTime {
		c.late.keep(r)
		return result, nil
	}
	switch failed := c.close(ctx, r); {
	case apierrors.IsConflict(failed) && (err == nil || apierrors.IsConflict(err)):
		return reconcile.Result{RequeueAfter: lookAgain}, nil // the cache was behind, or a notice joined
	case failed != nil && !apierrors.IsNotFound(failed): // else it was deleted, which calls it off
		return reconcile.Result{}, errors.Join(err, failed)
	}
	return result, err
}

// carry does what was decided and planned, and tells of it.
func (c *Controller) carry(ctx context.Context, r *report) (reconcile.Result, error) {
	outcome, err := c.act(ctx, r.seen, r)
	r.reached(outcome)
	switch {
	case apierrors.IsConflict(err): // a cache was behind: the next pass finds it all again
		r.drop()
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return reconcile.Result{}, err // the queue backs off
	case outcome.quiet:
		r.drop()
	}
	r.hasTime = r.canWait(outcome) && c.Calm != nil
	told, err := c.tell(ctx, r, r.seen.decision)
	outcome.sooner(told.Wake)
	rank := priorityOf(r.seen.facts.in)
	result := wake(r.now, outcome.wake)
	result.Priority = &rank
	return result, err
}

// finish has told what is to be told of a finished record, and deletes it once
// it has been kept long enough.
func (c *Controller) finish(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (reconcile.Result, error) {
	told, err := c.tellOfFinished(ctx, in, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, err := c.expire(ctx, in, now)
	if at := told.Wake; !at.IsZero() && err == nil {
		result.RequeueAfter = min(result.RequeueAfter, max(at.Sub(now), time.Millisecond))
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
		return reconcile.Result{}, fmt.Errorf("deleting the finished record: %w", err)
	}
	return reconcile.Result{}, nil
}

// wake turns a moment into a result; the zero time means nothing but changes
// are waited for.
func wake(now, at time.Time) reconcile.Result {
	if at.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}
