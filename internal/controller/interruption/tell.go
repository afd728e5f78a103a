package interruption

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/errand"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// tell has the policy's notifications told what is known to be durable. What
// this pass has found is told by the next, which its writing brings about.
func (c *Controller) tell(ctx context.Context, r *report, d policy.Decision) (errand.NotifyResult, error) {
	if c.Errands == nil || len(d.Notifications) == 0 || d.Action == v1alpha1.ActionIgnore && !d.Withdrawn {
		return errand.NotifyResult{}, nil
	}
	told, err := c.Errands.Notify(ctx, errand.NotifyRequest{
		Notifications: d.Notifications, Timeline: r.before.Status.Timeline, Notified: r.before.Status.Notified,
		Subject: r.subject(), Now: r.now,
	})
	if err != nil {
		return told, fmt.Errorf("notifying: %w", err)
	}
	r.after.Status.Notified = told.Notified
	for _, h := range told.Happened {
		r.happen(h.Reason, h.Message)
	}
	return told, nil
}

// tellOfFinished has told how a finished record ended.
func (c *Controller) tellOfFinished(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (errand.NotifyResult, error) {
	if c.Errands == nil || in.Status.Decision == nil || in.Status.Decision.Governor == "" {
		return errand.NotifyResult{}, nil
	}
	var governor v1alpha1.InterruptionPolicy
	if err := c.Client.Get(ctx, client.ObjectKey{Name: in.Status.Decision.Governor}, &governor); err != nil {
		return errand.NotifyResult{}, client.IgnoreNotFound(err)
	}
	if len(policy.Validate(governor.Spec)) > 0 {
		return errand.NotifyResult{}, nil
	}
	r := &report{now: now, before: in.DeepCopy(), after: in}
	r.older = r.before.Status.Timeline
	d := policy.Decision{Decision: *in.Status.Decision, Notifications: governor.Spec.Notifications, Withdrawn: in.Status.Phase == v1alpha1.PhaseCancelled}
	told, err := c.tell(ctx, r, d)
	if err != nil || equality.Semantic.DeepEqual(r.before.Status, r.after.Status) {
		return told, err
	}
	if err := c.write(ctx, r); apierrors.IsConflict(err) {
		told.Wake = now.Add(lookAgain) // the cache was behind
		return told, nil
	} else if err != nil {
		return told, err
	}
	return told, nil
}
