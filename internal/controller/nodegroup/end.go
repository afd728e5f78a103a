package nodegroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
)

// deletes tells whether the group goes with the object.
func deletes(g *v1alpha1.NodeGroup) bool {
	return g.Spec.DeletionPolicy == v1alpha1.DeleteGroup && g.Spec.Management == v1alpha1.ManageAll
}

// settleFinalizer has the object wait for its group if that is to go with it, and
// only then.
func (c *Controller) settleFinalizer(ctx context.Context, g *v1alpha1.NodeGroup) (changed bool, err error) {
	if deletes(g) == controllerutil.ContainsFinalizer(g, v1alpha1.FinalizerNodeGroup) {
		return false, nil
	}
	base := client.MergeFromWithOptions(g.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if deletes(g) {
		controllerutil.AddFinalizer(g, v1alpha1.FinalizerNodeGroup)
	} else {
		controllerutil.RemoveFinalizer(g, v1alpha1.FinalizerNodeGroup)
	}
	if err := c.Client.Patch(ctx, g, base); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("setting the finalizer of node group %s: %w", g.Name, err)
	}
	return true, nil
}

// end deletes the group of an object that is being deleted, if it is to go with
// it. It waits until nothing of the group is in service.
func (c *Controller) end(ctx context.Context, g *v1alpha1.NodeGroup, m *memory) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(g, v1alpha1.FinalizerNodeGroup) {
		c.forget(g.Name)
		return reconcile.Result{}, nil
	}
	other, err := c.elder(ctx, g)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !deletes(g) || other != "" {
		return c.letGo(ctx, g)
	}
	s := standing{wanted: nodegroup.Want(g, c.Cluster)}
	steps, waits := c.teardown(ctx, g, m, &s)
	if waits == "" {
		m.sight.stale = true // what is to be deleted is looked at right before
		steps, waits = c.teardown(ctx, g, m, &s)
	}
	if len(steps) == 0 && waits == "" {
		c.Events.Eventf(g, nil, corev1.EventTypeNormal, "GroupDeleted", "Delete", "Auto Scaling group %s is deleted", s.wanted.Group)
		return c.letGo(ctx, g)
	}
	s.ending = waits
	for _, step := range steps {
		if s.failed = c.AWS.Apply(ctx, s.wanted, step); s.failed != nil {
			break
		}
		log.FromContext(ctx).Info("deleting the node group", "group", s.wanted.Group, "step", step.String())
		s.ending = fmt.Sprintf("%s: %s", step, step.Reason)
	}
	switch {
	case cloud.IsBusy(s.failed):
		s.ending = "it is tried again in a moment: " + s.failed.Error()
	case s.failed != nil:
		s.ending = s.failed.Error()
	}
	if s.ending != m.said {
		m.said = s.ending
		c.Events.Eventf(g, nil, corev1.EventTypeNormal, reasonDeleting, "Delete", "%s", s.ending)
	}
	return c.report(ctx, g, m, s)
}

// teardown looks, and says what is next.
func (c *Controller) teardown(ctx context.Context, g *v1alpha1.NodeGroup, m *memory, s *standing) (steps []nodegroup.Step, waits string) {
	s.observed, s.known, s.err = c.look(ctx, g, m)
	if s.err != nil || !s.known {
		return nil, fmt.Sprintf("the group is not deleted as long as it could not be read: %v", s.err)
	}
	return nodegroup.Teardown(s.observed)
}

// letGo lets the object be deleted.
func (c *Controller) letGo(ctx context.Context, g *v1alpha1.NodeGroup) (reconcile.Result, error) {
	base := client.MergeFromWithOptions(g.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(g, v1alpha1.FinalizerNodeGroup)
	if err := c.Client.Patch(ctx, g, base); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("letting node group %s go: %w", g.Name, err)
	}
	c.forget(g.Name)
	return reconcile.Result{}, nil
}
