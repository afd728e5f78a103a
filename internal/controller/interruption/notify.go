package interruption

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/errand"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// notify sends the notifications of the policy for timeline entries that are written.
// The entries of this pass follow in the pass after their write. It returns when to look
// again.
func (c *Controller) notify(ctx context.Context, u *status.Update, d policy.Decision, now time.Time) (wake time.Time, err error) {
	if c.Errands == nil || len(d.Notifications) == 0 || d.Action == v1alpha1.ActionIgnore && !d.Withdrawn {
		return time.Time{}, nil
	}
	written := u.Written()
	sent, err := c.Errands.Tell(ctx, errand.Telling{
		Notifications: d.Notifications, Timeline: written.Timeline, Notified: written.Notified,
		Subject: u.Subject(), Now: now,
	})
	if err != nil {
		return sent.Wake, fmt.Errorf("notifying: %w", err)
	}
	u.Status().Notified = sent.Notified
	for _, h := range sent.Happened {
		u.Record(h.Reason, h.Message)
	}
	return sent.Wake, nil
}

// notifyFinished sends the notifications about the end of a finished Interruption.
func (c *Controller) notifyFinished(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (wake time.Time, err error) {
	if c.Errands == nil || in.Status.Decision == nil || in.Status.Decision.Governor == "" {
		return time.Time{}, nil
	}
	var governor v1alpha1.InterruptionPolicy
	if err := c.Client.Get(ctx, client.ObjectKey{Name: in.Status.Decision.Governor}, &governor); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	if len(policy.Validate(governor.Spec)) > 0 {
		return time.Time{}, nil
	}
	u := status.ForFinished(in, now)
	d := policy.Decision{Decision: *in.Status.Decision, Notifications: governor.Spec.Notifications, Withdrawn: in.Status.Phase == v1alpha1.PhaseCancelled}
	wake, err = c.notify(ctx, u, d, now)
	if err != nil || !u.Changed() {
		return wake, err
	}
	if err := c.writer().Write(ctx, u); apierrors.IsConflict(err) {
		return now.Add(requeueCache), nil // the cache is stale
	} else if err != nil {
		return wake, err
	}
	return wake, nil
}
