package nodegroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// deletes reports whether the group is deleted with the object.
func deletes(g *v1beta1.NodeGroup) bool {
	return g.Spec.DeletionPolicy == v1beta1.DeleteGroup && g.Spec.Management == v1beta1.ManageAll
}

// settleFinalizer sets the finalizer if the group is deleted with the object,
// and removes it otherwise.
func (c *Controller) settleFinalizer(ctx context.Context, g *v1beta1.NodeGroup) (changed bool, err error) {
	if deletes(g) == controllerutil.ContainsFinalizer(g, v1beta1.FinalizerNodeGroup) {
		return false, nil
	}
	base := client.MergeFromWithOptions(g.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if deletes(g) {
		controllerutil.AddFinalizer(g, v1beta1.FinalizerNodeGroup)
	} else {
		controllerutil.RemoveFinalizer(g, v1beta1.FinalizerNodeGroup)
	}
	if err := c.Client.Patch(ctx, g, base); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("setting the finalizer of node group %s: %w", g.Name, err)
	}
	return true, nil
}

// end deletes the group of a deleted object if the object asks for it. It waits
// until no instance of the group is in service.
func (c *Controller) end(ctx context.Context, g *v1beta1.NodeGroup, m *memory) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(g, v1beta1.FinalizerNodeGroup) {
		c.forget(g.Name)
		return reconcile.Result{}, nil
	}
	other, err := c.otherOwner(ctx, g)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !deletes(g) || other != "" {
		return c.removeFinalizer(ctx, g)
	}
	s := passState{wanted: nodegroup.Want(g, c.Cluster)}
	steps, waits := c.teardown(ctx, g, m, &s)
	if waits == "" {
		m.reading.stale = true // read the group again right before the deletion
		steps, waits = c.teardown(ctx, g, m, &s)
	}
	if len(steps) == 0 && waits == "" {
		c.Events.Eventf(g, nil, corev1.EventTypeNormal, "GroupDeleted", "Delete", "Auto Scaling group %s is deleted", s.wanted.Group)
		return c.removeFinalizer(ctx, g)
	}
	s.ending = waits
	for _, step := range steps {
		if s.failed = c.AWS.Apply(ctx, s.wanted, step); s.failed != nil {
			break
		}
		log.FromContext(ctx).Info("deleting node group", "group", s.wanted.Group, "step", step.String())
		s.ending = fmt.Sprintf("%s: %s", step, step.Reason)
	}
	switch {
	case cloud.IsBusy(s.failed):
		s.ending = "retrying soon: " + s.failed.Error()
	case s.failed != nil:
		s.ending = s.failed.Error()
	}
	if s.ending != m.lastEvent {
		m.lastEvent = s.ending
		c.Events.Eventf(g, nil, corev1.EventTypeNormal, reasonDeleting, "Delete", "%s", s.ending)
	}
	return c.report(ctx, g, m, s)
}

// teardown reads the group and returns the next step.
func (c *Controller) teardown(ctx context.Context, g *v1beta1.NodeGroup, m *memory, s *passState) (steps []nodegroup.Step, waits string) {
	s.observed, s.known, s.err = c.look(ctx, g, m)
	if s.err != nil || !s.known {
		return nil, fmt.Sprintf("the group cannot be deleted until it can be read: %v", s.err)
	}
	return nodegroup.Teardown(s.observed, c.Cluster)
}

// removeFinalizer lets the object be deleted.
func (c *Controller) removeFinalizer(ctx context.Context, g *v1beta1.NodeGroup) (reconcile.Result, error) {
	base := client.MergeFromWithOptions(g.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(g, v1beta1.FinalizerNodeGroup)
	if err := c.Client.Patch(ctx, g, base); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing the finalizer of node group %s: %w", g.Name, err)
	}
	c.forget(g.Name)
	return reconcile.Result{}, nil
}
