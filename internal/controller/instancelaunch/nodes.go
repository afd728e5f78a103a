package instancelaunch

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
)

// nodeDue reports whether the node may be changed again: the cache may still show it before the
// last change.
func (s *Sweep) nodeDue(t *task) bool {
	now := s.o.Clock()
	if now.Sub(t.entry.nodeTried) < nodeRetry {
		return false
	}
	t.entry.nodeTried = now
	return true
}

// applyToNode carries out the decision about a node.
func (s *Sweep) applyToNode(ctx context.Context, w *world, t *task) {
	var err error
	switch t.decision.Node {
	case lifecycle.Untaint:
		if err = s.taint(ctx, t.node, false); err == nil {
			s.emit(w, t, corev1.EventTypeNormal, "InService", "instance %s is in service in Auto Scaling group %sand takes pods", t.member.InstanceID, t.group)
		}
	case lifecycle.Taint:
		if err = s.taint(ctx, t.node, true); err == nil {
			s.emit(w, t, corev1.EventTypeWarning, "InWarmPool", "instance %s is in the warm pool of Auto Scaling group %s (%s), but its kubelet has started: "+
				"make its systemd unit wait for `lifeboatd agent boot`", t.member.InstanceID, t.group, t.member.State)
		}
	case lifecycle.Evict:
		err = s.evict(ctx, t.node.Name)
	case lifecycle.Delete:
		if err = s.remove(ctx, t.node); err == nil {
			s.emit(w, t, corev1.EventTypeNormal, "NodeOfWarmInstance", "the node was deleted: instance %s is %s", t.member.InstanceID, t.member.State)
		}
	}
	log := log.FromContext(ctx).WithValues("node", t.node.Name, "instance", t.member.InstanceID, "state", t.member.State, "did", t.decision.Node)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err): // it is read again
	case err != nil:
		log.Info("cannot change a node, retrying", "error", err.Error())
	default:
		log.Info("changed a node", "because", t.decision.Reason)
	}
}

// taint adds or removes the startup taint of a node. A merge patch replaces the list of taints,
// so another writer's taint would be lost without the lock.
func (s *Sweep) taint(ctx context.Context, node *corev1.Node, on bool) error {
	to := node.DeepCopy()
	to.Spec.Taints = slices.DeleteFunc(to.Spec.Taints, isStartup)
	if on {
		to.Spec.Taints = append(to.Spec.Taints, corev1.Taint{Key: v1beta1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule})
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

// remove deletes exactly the node that was read: a node that registers under its name is another
// one, and one that its kubelet has changed is in use.
func (s *Sweep) remove(ctx context.Context, node *corev1.Node) error {
	if err := s.o.Client.Delete(ctx, node.DeepCopy(), client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion}); err != nil {
		return fmt.Errorf("deleting node %s: %w", node.Name, err)
	}
	return nil
}

// evict evicts the pods of a node, as far as their budgets allow.
func (s *Sweep) evict(ctx context.Context, node string) error {
	pods, err := s.moving(ctx, node)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			continue
		}
		if _, err := mutate.Evict(ctx, s.o.Client, &pods[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// emit emits an Event on the node, or on the NodeGroup if there is no node.
func (s *Sweep) emit(w *world, t *task, typ, reason, note string, args ...any) {
	if t.node != nil {
		s.o.Events.Eventf(t.node, nil, typ, reason, reason, note, args...)
		return
	}
	for _, g := range w.declared[t.group] {
		s.o.Events.Eventf(g, nil, typ, reason, reason, note, args...)
	}
}

// emitForGroup emits a warning on the NodeGroup.
func (s *Sweep) emitForGroup(w *world, group, reason, note string, args ...any) {
	for _, g := range w.declared[group] {
		s.o.Events.Eventf(g, nil, corev1.EventTypeWarning, reason, reason, note, args...)
	}
}

// moment formats a time for people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
