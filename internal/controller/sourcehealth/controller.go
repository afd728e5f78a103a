// Package sourcehealth reports notices that another source delivered and the queue
// did not: the wiring is broken, and the next notice may arrive too late.
package sourcehealth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Cause returns why the queue did not deliver notices of a kind, as far as
// known, and what to do about it.
type Cause func(ctx context.Context, kind string) (because, advice string)

// Options configure the controller. All fields are required.
type Options struct {
	Client client.Client
	Events events.EventRecorder
	Cause  Cause
	// Clock returns the current time.
	Clock func() time.Time
	// Registerer takes the metric.
	Registerer prometheus.Registerer
}

// Controller sets the condition WiringDegraded.
type Controller struct {
	o        Options
	causes   *causes
	degraded *prometheus.CounterVec
}

var degradedTotal = metric.Definition{
	Name: "lifeboat_wiring_degraded_total", Type: metric.Counter, Unit: "Interruptions",
	Help:   "Interruptions that another source brought and the queue did not, by kind.",
	Labels: []metric.Label{metric.OneOf("kind", notice.Kinds()...)},
}

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{degradedTotal} }

// conflictRetry is the requeue interval after a conflict.
const conflictRetry = 250 * time.Millisecond

// recheckInterval is how often AWS is asked whether a known cause is corrected: a few dozen read-only
// calls.
const recheckInterval = 5 * time.Minute

// New returns the controller, or an error if its metric is already registered.
func New(o Options) (*Controller, error) {
	degraded := degradedTotal.NewCounters()
	if err := metric.Register(o.Registerer, "notices missing on the queue", degraded); err != nil {
		return nil, err
	}
	return &Controller{o: o, causes: newCauses(o.Cause, o.Clock), degraded: degraded}, nil
}

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("sourcehealth").
		For(&v1beta1.Interruption{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile waits until the queue's notice is overdue, then reports it once.
func (c *Controller) Reconcile(ctx context.Context, in *v1beta1.Interruption) (reconcile.Result, error) {
	if !in.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	since := record.Since(&in.Status)
	missing, ok := notice.MissedByQueue(in.Spec.Notices, since)
	current := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionWiringDegraded)
	switch {
	case current != nil && current.Status == metav1.ConditionTrue:
		return c.restore(ctx, in, current, since)
	case !ok, current != nil && current.Reason == v1beta1.ReasonWiringRepaired && kindOf(current) == missing.Kind:
		return reconcile.Result{}, nil
	}
	if left := missing.Due.Sub(c.o.Clock()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return c.degrade(ctx, in, missing)
}

// degrade reports the missing notice and the cause.
func (c *Controller) degrade(ctx context.Context, in *v1beta1.Interruption, missing notice.Missing) (reconcile.Result, error) {
	because, advice := c.causes.of(ctx, missing.Kind)
	message := fmt.Sprintf("%s was reported by %s but not by the queue: %s", missing.Kind, missing.Source, because)
	if advice != "" {
		message += "; " + advice
	}
	err := c.set(ctx, in, metav1.ConditionTrue, v1beta1.ReasonMissingFromQueue, message)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("setting the condition WiringDegraded: %w", err)
	}
	log.FromContext(ctx).Info("another source reported a notice that the queue did not deliver",
		"instance", in.Spec.InstanceID, "kind", missing.Kind, "source", missing.Source, "because", because, "advice", advice)
	c.o.Events.Eventf(in, nil, corev1.EventTypeWarning, v1beta1.ConditionWiringDegraded, "Listen", "%s", message)
	c.degraded.WithLabelValues(missing.Kind).Inc()
	return reconcile.Result{RequeueAfter: recheckInterval}, nil
}

// restore resets the condition if the queue was only late, or if the wiring is repaired: the cause that
// the condition names is gone, and AWS shows no other. A condition without a known cause stays, for a
// person to look at. The record may no longer contain the other source's notice, such as a lifecycle
// state that has passed.
func (c *Controller) restore(ctx context.Context, in *v1beta1.Interruption, current *metav1.Condition, since time.Time) (reconcile.Result, error) {
	kind := kindOf(current)
	if notice.ReceivedByQueue(in.Spec.Notices, since, kind) {
		return c.reset(ctx, in, v1beta1.ReasonNoticeReceived, "the queue delivered the notice late")
	}
	switch age := c.o.Clock().Sub(current.LastTransitionTime.Time); {
	case age > record.DegradedFor:
		return reconcile.Result{}, nil
	case age < recheckInterval:
		return reconcile.Result{RequeueAfter: recheckInterval - age}, nil
	}
	because, advice := c.causes.of(ctx, kind)
	if advice != "" || strings.Contains(current.Message, because) {
		return reconcile.Result{RequeueAfter: recheckInterval}, nil
	}
	return c.reset(ctx, in, v1beta1.ReasonWiringRepaired, kind+" was not delivered, and the cause is corrected. Before: "+current.Message)
}

// kindOf is the kind that a message of the condition begins with.
func kindOf(c *metav1.Condition) string {
	kind, _, _ := strings.Cut(c.Message, " ")
	return kind
}

// reset sets the condition to False.
func (c *Controller) reset(ctx context.Context, in *v1beta1.Interruption, reason, message string) (reconcile.Result, error) {
	err := c.set(ctx, in, metav1.ConditionFalse, reason, message)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("resetting the condition WiringDegraded: %w", err)
	}
	return reconcile.Result{}, nil
}

// longest is the API's limit of a condition message (metav1.Condition).
const longest = 32768

func (c *Controller) set(ctx context.Context, in *v1beta1.Interruption, status metav1.ConditionStatus, reason, message string) error {
	base := client.MergeFromWithOptions(in.DeepCopy(), client.MergeFromWithOptimisticLock{})
	desired := in.DeepCopy()
	meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionWiringDegraded, Status: status, Reason: reason, Message: message[:min(len(message), longest)],
		ObservedGeneration: in.Generation, LastTransitionTime: metav1.NewTime(c.o.Clock()),
	})
	return c.o.Client.Status().Patch(ctx, desired, base)
}
