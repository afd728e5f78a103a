// Package notification delivers the notifications that policies ask for. Its controller
// reads the written timeline of an Interruption and records in status.notifications how far
// each notification has come.
package notification

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// conflictRequeue is when to try again after a conflict: the cache is stale, or the
// interruption controller wrote the status.
const conflictRequeue = 250 * time.Millisecond

// Sender sends notifications; runner.Runner is one.
type Sender interface {
	// Notify takes the notifications of an Interruption one step further. It must not
	// block.
	Notify(context.Context, runner.NotifyRequest) (runner.NotifyResult, error)
}

// Options configure the controller. All fields are required.
type Options struct {
	Client client.Client
	Sender Sender
	Events events.EventRecorder
	// Clock returns the current time.
	Clock func() time.Time
}

// Controller delivers notifications.
type Controller struct {
	o Options
}

// New returns the controller.
func New(o Options) *Controller { return &Controller{o: o} }

// Register adds the controller to a manager. done yields the names of Interruptions of
// which a request is answered.
func (c *Controller) Register(mgr ctrl.Manager, done <-chan event.TypedGenericEvent[string]) error {
	byName := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("notification").
		For(&v1beta1.Interruption{}).
		WatchesRawSource(source.Channel(done, byName)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile sends what the timeline has and status.notifications has not.
func (c *Controller) Reconcile(ctx context.Context, in *v1beta1.Interruption) (reconcile.Result, error) {
	if !in.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	notifications, err := c.notifications(ctx, in)
	if err != nil || len(notifications) == 0 {
		return reconcile.Result{}, err
	}
	now := c.o.Clock()
	update := status.ForTimeline(in, now)
	sent, err := c.o.Sender.Notify(ctx, runner.NotifyRequest{
		Notifications: notifications, Timeline: in.Status.Timeline, Notified: in.Status.Notifications,
		Subject: update.Subject(), Now: now,
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("sending notifications: %w", err)
	}
	update.Status().Notifications = sent.Notified
	for _, e := range sent.Happened {
		update.Record(e.Reason, e.Message)
	}
	if update.Changed() {
		_, err = (&status.Writer{Client: c.o.Client, Events: c.o.Events}).Finish(ctx, update)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	}
	if sent.Wake.IsZero() || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: max(sent.Wake.Sub(now), time.Millisecond)}, nil
}

// notifications returns the notifications of the policy that selects the node. An
// Interruption that a policy ignores sends none, unless its notice was withdrawn.
func (c *Controller) notifications(ctx context.Context, in *v1beta1.Interruption) ([]v1beta1.Notification, error) {
	d := in.Status.Decision
	if d == nil || d.EffectivePolicy == "" || d.Action == v1beta1.ActionIgnore && in.Status.Phase != v1beta1.PhaseCancelled {
		return nil, nil
	}
	var p v1beta1.InterruptionPolicy
	if err := c.o.Client.Get(ctx, client.ObjectKey{Name: d.EffectivePolicy}, &p); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if len(policy.Validate(p.Spec)) > 0 {
		return nil, nil
	}
	return begun(p.Spec.Notifications, &in.Status, c.o.Clock()), nil
}

// beginsUntil is how long after the end of an Interruption a notification may still begin. One that
// is new in a policy would otherwise report all Interruptions that are kept, which can be hundreds.
const beginsUntil = 10 * time.Minute

// begun returns the notifications that report the Interruption with that status.
func begun(all []v1beta1.Notification, s *v1beta1.InterruptionStatus, now time.Time) []v1beta1.Notification {
	if s.CompletionTime == nil || now.Sub(s.CompletionTime.Time) < beginsUntil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(n v1beta1.Notification) bool {
		return !slices.ContainsFunc(s.Notifications, func(old v1beta1.NotificationStatus) bool { return old.Name == n.Name })
	})
}
