package interruption

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// requests are Interruptions to reconcile, with their priority in the queue.
type requests map[string]int

// enqueue adds to the queue the Interruptions that an object concerns.
func enqueue[O any](concerned func(context.Context, O) requests) handler.TypedFuncs[O, reconcile.Request] {
	add := func(ctx context.Context, o O, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for name, rank := range concerned(ctx, o) {
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
			if ranked, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
				ranked.AddWithOpts(priorityqueue.AddOpts{Priority: &rank}, request)
				continue
			}
			q.Add(request)
		}
	}
	return handler.TypedFuncs[O, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
	}
}

func (c *Controller) itself(_ context.Context, o client.Object) requests {
	in, ok := o.(*v1alpha1.Interruption)
	if !ok {
		return nil
	}
	return requests{in.Name: record.Priority(in)}
}

// queued returns the Interruptions that wait for a slot.
func (c *Controller) queued(ctx context.Context, _ client.Object) requests {
	return c.unfinished(ctx, func(in *v1alpha1.Interruption) bool { return in.Status.Phase == v1alpha1.PhaseQueued })
}

// ofJob returns the Interruption that a Job is a hook of.
func (c *Controller) ofJob(ctx context.Context, job client.Object) requests {
	return c.ofName(ctx, job.GetLabels()[v1alpha1.LabelInterruption])
}

func (c *Controller) ofName(ctx context.Context, name string) requests {
	var in v1alpha1.Interruption
	if name == "" || c.Client.Get(ctx, client.ObjectKey{Name: name}, &in) != nil {
		return nil // it is deleted
	}
	return requests{name: record.Priority(&in)}
}

// ofReplacement returns the Interruption that a replacement is for, and those whose
// replacements wait to be ordered.
func (c *Controller) ofReplacement(ctx context.Context, instanceID string) requests {
	return c.unfinished(ctx, func(in *v1alpha1.Interruption) bool {
		s := record.Drain(&in.Status).Replacement
		return in.Spec.InstanceID == instanceID || s != nil && s.Phase == v1alpha1.ReplacementQueued
	})
}

func (c *Controller) ofNode(ctx context.Context, node client.Object) requests {
	return c.ofNodeName(ctx, node.GetName())
}

func (c *Controller) ofNodeName(ctx context.Context, name string) requests {
	return c.unfinished(ctx, func(*v1alpha1.Interruption) bool { return true }, client.MatchingFields{byNode: name})
}

// byNode is the index of Interruptions by node; it is no path of the object.
const byNode = "lifeboat.node"

// nodesOf are the keys of an Interruption in that index.
func nodesOf(o client.Object) []string {
	in, ok := o.(*v1alpha1.Interruption)
	if !ok {
		return nil
	}
	nodes := []string{in.Spec.NodeName}
	if in.Status.NodeName != "" && in.Status.NodeName != in.Spec.NodeName {
		nodes = append(nodes, in.Status.NodeName)
	}
	return nodes
}

// ofBudget returns the Interruptions with a pod in the budget's namespace that is not
// evicted yet.
func (c *Controller) ofBudget(ctx context.Context, budget client.Object) requests {
	return c.unfinished(ctx, func(in *v1alpha1.Interruption) bool {
		return slices.ContainsFunc(record.Drain(&in.Status).PendingPods, func(left v1alpha1.PendingPod) bool {
			return left.AskedTime == nil && left.Namespace == budget.GetNamespace()
		})
	})
}

func (c *Controller) all(ctx context.Context, _ client.Object) requests {
	return c.unfinished(ctx, func(*v1alpha1.Interruption) bool { return true })
}

// unfinished returns the Interruptions that match and are not finished. It reads the cache
// without copies: there may be thousands.
func (c *Controller) unfinished(ctx context.Context, matches func(*v1alpha1.Interruption) bool, only ...client.ListOption) requests {
	var list v1alpha1.InterruptionList
	if err := c.Client.List(ctx, &list, append(only, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "listing interruptions from the cache")
		return nil
	}
	found := requests{}
	for i := range list.Items {
		if in := &list.Items[i]; !notice.Finished(in) && matches(in) {
			found[in.Name] = record.Priority(in)
		}
	}
	return found
}
