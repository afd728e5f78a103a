package interruption

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// The changes that matter: not a node's heartbeat. Of a PodDisruptionBudget the planner reads its
// drain.Budget, so every change of that matters.
var (
	generationPredicate = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
	nodePredicate = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok1 := e.ObjectOld.(*corev1.Node)
		is, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok1 || !ok2 || nodeindex.Ready(was) != nodeindex.Ready(is) || nodeindex.Silent(was) != nodeindex.Silent(is) ||
			!equality.Semantic.DeepEqual(was.Spec, is.Spec) || !equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
			!equality.Semantic.DeepEqual(was.Annotations, is.Annotations) // the cache has only those that are read
	}}
	budgetPredicate = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok1 := e.ObjectOld.(*budgetcache.Object)
		is, ok2 := e.ObjectNew.(*budgetcache.Object)
		return !ok1 || !ok2 || !was.Budget.Equal(is.Budget)
	}}
	// An Interruption whose drain is done, or that is finished, frees a slot.
	slotPredicate = predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok1 := e.ObjectOld.(*v1beta1.Interruption)
			is, ok2 := e.ObjectNew.(*v1beta1.Interruption)
			return ok1 && ok2 && (record.Frees(&was.Status, &is.Status) || !notice.Finished(was) && notice.Finished(is))
		},
	}
)

// queued returns the Interruptions that wait for a slot.
func (c *Controller) queued(ctx context.Context, _ client.Object) requests {
	return c.unfinished(ctx, func(in *v1beta1.Interruption) bool { return in.Status.Phase == v1beta1.PhaseQueued })
}

// ofReplacement returns the Interruption that a replacement is for, and those whose
// replacements wait to be ordered.
func (c *Controller) ofReplacement(ctx context.Context, instanceID string) requests {
	return c.unfinished(ctx, func(in *v1beta1.Interruption) bool {
		s := record.Drain(&in.Status).Replacement
		return in.Spec.InstanceID == instanceID || s != nil && s.Phase == v1beta1.ReplacementQueued
	})
}

// ofBudget returns the Interruptions with a pod in the budget's namespace that is not
// evicted yet.
func (c *Controller) ofBudget(ctx context.Context, budget client.Object) requests {
	return c.unfinished(ctx, func(in *v1beta1.Interruption) bool {
		return slices.ContainsFunc(record.Pending(record.Drain(&in.Status)), func(left v1beta1.PodStatus) bool {
			return left.EvictionTime == nil && left.Namespace == budget.GetNamespace()
		})
	})
}

func (c *Controller) all(ctx context.Context, _ client.Object) requests {
	return c.unfinished(ctx, func(*v1beta1.Interruption) bool { return true })
}

func (c *Controller) ofName(ctx context.Context, name string) requests {
	var in v1beta1.Interruption
	if name == "" || c.Client.Get(ctx, client.ObjectKey{Name: name}, &in) != nil {
		return nil // it is deleted
	}
	return requests{name: c.priority(ctx, &in)}
}
