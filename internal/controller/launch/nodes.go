package launch

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// nodeDue reports whether something may be done to the node again: what the cache
// has of it may be from before the last time.
func (s *Sweep) nodeDue(t *task) bool {
	now := s.o.Clock()
	if now.Sub(t.entry.nodeTried) < nodeRetry {
		return false
	}
	t.entry.nodeTried = now
	return true
}

// seeToNode does to a node what was decided.
func (s *Sweep) seeToNode(ctx context.Context, w *world, t *task) {
	var err error
	switch t.decision.Node {
	case lifecycle.Untaint:
		if err = s.taint(ctx, t.node, false); err == nil {
			s.tell(w, t, corev1.EventTypeNormal, "InService", "instance %s is in service in Auto Scaling group %s: pods may come", t.member.InstanceID, t.group)
		}
	case lifecycle.Taint:
		if err = s.taint(ctx, t.node, true); err == nil {
			s.tell(w, t, corev1.EventTypeWarning, "InWarmPool", "instance %s is in the warm pool of Auto Scaling group %s (%s), and its kubelet started all the same: "+
				"have its unit wait for `lifeboatd agent boot`", t.member.InstanceID, t.group, t.member.State)
		}
	case lifecycle.Evict:
		err = s.evict(ctx, t.node.Name)
	case lifecycle.Delete:
		if err = s.remove(ctx, t.node); err == nil {
			s.tell(w, t, corev1.EventTypeNormal, "NodeOfWarmInstance", "the node was deleted: instance %s is %s", t.member.InstanceID, t.member.State)
		}
	}
	log := log.FromContext(ctx).WithValues("node", t.node.Name, "instance", t.member.InstanceID, "state", t.member.State, "did", t.decision.Node)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err): // it is looked at again
	case err != nil:
		log.Info("could not see to a node, goes on trying", "error", err.Error())
	default:
		log.Info("saw to a node", "because", t.decision.Reason)
	}
}

// taint puts the startup taint on a node, or takes it off. Taints are a list that
// a merge patch replaces whole, so another writer's would be lost without the lock.
func (s *Sweep) taint(ctx context.Context, node *corev1.Node, on bool) error {
	to := node.DeepCopy()
	to.Spec.Taints = slices.DeleteFunc(to.Spec.Taints, isStartup)
	if on {
		to.Spec.Taints = append(to.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule})
	}
	if len(to.Spec.Taints) == 0 {
		to.Spec.Taints = nil
	}
	patch := client.MergeFromWithOptions(node.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := s.o.Client.Patch(ctx, to, patch); err != nil {
		return fmt.Errorf("changing the startup taint of node %s: %w", node.Name, err)
	}
	return nil
}

// remove deletes this very node as it was seen: one that registers under its name
// meanwhile is another, and one that its kubelet has been at is in use.
func (s *Sweep) remove(ctx context.Context, node *corev1.Node) error {
	if err := s.o.Client.Delete(ctx, node.DeepCopy(), client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion}); err != nil {
		return fmt.Errorf("deleting node %s: %w", node.Name, err)
	}
	return nil
}

// evict asks the pods of a node to leave, as far as their budgets let them.
func (s *Sweep) evict(ctx context.Context, node string) error {
	pods, err := s.moving(ctx, node)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			continue
		}
		if _, err := action.Evict(ctx, s.o.Client, &pods[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// tell tells people by an Event on the node, or where there is none on the
// NodeGroup.
func (s *Sweep) tell(w *world, t *task, typ, reason, note string, args ...any) {
	if t.node != nil {
		s.o.Events.Eventf(t.node, nil, typ, reason, reason, note, args...)
		return
	}
	for _, g := range w.declared[t.group] {
		s.o.Events.Eventf(g, nil, typ, reason, reason, note, args...)
	}
}

// tellGroup warns people by an Event on the NodeGroup.
func (s *Sweep) tellGroup(w *world, group, reason, note string, args ...any) {
	for _, g := range w.declared[group] {
		s.o.Events.Eventf(g, nil, corev1.EventTypeWarning, reason, reason, note, args...)
	}
}

// moment writes a time for people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
