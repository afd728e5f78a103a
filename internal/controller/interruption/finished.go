package interruption

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// forgetFinished frees the memory for an Interruption that is finished. It keeps the pod
// watch where another Interruption has a node of the same name.
func (c *Controller) forgetFinished(ctx context.Context, in *v1beta1.Interruption) {
	c.barrier.forget(in.Name)
	c.missing.observe(in.Name, true, time.Time{})
	c.backoff.forget(in.Name)
	c.refusals.forget(in.Name)
	c.departures.forget(in.Name)
	if node := in.Status.NodeName; len(c.ofNodeName(ctx, node)) == 0 {
		c.forget(node)
	}
}

// expire deletes a finished Interruption after its TTL.
func (c *Controller) expire(ctx context.Context, in *v1beta1.Interruption, now time.Time) (reconcile.Result, error) {
	if left := in.Status.CompletionTime.Add(c.TTL).Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	// The resource version protects a notice that has just been added.
	err := c.Client.Delete(ctx, in, client.Preconditions{UID: &in.UID, ResourceVersion: &in.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("deleting the finished Interruption: %w", err)
	}
	return reconcile.Result{}, nil
}
