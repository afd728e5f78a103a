package interruption

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// maxReconciles is how many Interruptions are reconciled at the same time. Passes are
// short and mostly wait for the API server, whose Priority and Fairness is the limit.
const maxReconciles = 64

// Register adds the controller to a manager. changedNodes yields the names of nodes whose
// pods or their owners changed; wanted the names of Interruptions whose hooks or
// notifications changed, and replaced the instances whose replacements changed.
func (c *Controller) Register(mgr ctrl.Manager, changedNodes, wanted, replaced <-chan event.TypedGenericEvent[string]) error {
	// A manager indexes before its caches start, so no context is needed.
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1beta1.Interruption{}, byNode, nodesOf); err != nil {
		return fmt.Errorf("indexing interruptions by node: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr)
	if c.GroupChanges != nil {
		b = b.WatchesRawSource(source.Channel(c.GroupChanges, enqueue(c.ofGroup)))
	}
	return b.
		Named("interruption").
		Watches(&v1beta1.Interruption{}, c.feedBarrier(enqueue(c.itself))).
		Watches(&v1beta1.Interruption{}, enqueue(c.queued), builder.WithPredicates(slotPredicate)).
		Watches(&corev1.Node{}, enqueue(c.ofNode), builder.WithPredicates(nodePredicate)).
		Watches(&policyv1.PodDisruptionBudget{}, enqueue(c.ofBudget), builder.WithPredicates(budgetPredicate)).
		Watches(&v1beta1.InterruptionPolicy{}, enqueue(c.all), builder.WithPredicates(generationPredicate)).
		Watches(&v1beta1.Pause{}, enqueue(c.all), builder.WithPredicates(generationPredicate)).
		WatchesRawSource(source.Channel(changedNodes, enqueue(c.ofNodeName))).
		WatchesRawSource(source.Channel(wanted, enqueue(c.ofName))).
		WatchesRawSource(source.Channel(replaced, enqueue(c.ofReplacement))).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxReconciles, RateLimiter: c.backoff}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// feedBarrier updates the cordon barrier before an Interruption is enqueued, so that no
// reconcile misses an Interruption that arrived earlier.
func (c *Controller) feedBarrier(next handler.TypedFuncs[client.Object, reconcile.Request]) handler.EventHandler {
	fed := next
	fed.CreateFunc = func(ctx context.Context, e event.CreateEvent, q queue) {
		c.barrier.observe(nil, e.Object, c.Clock())
		next.Create(ctx, e, q)
	}
	fed.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, q queue) {
		c.barrier.observe(e.ObjectOld, e.ObjectNew, c.Clock())
		next.Update(ctx, e, q)
	}
	fed.DeleteFunc = func(ctx context.Context, e event.DeleteEvent, q queue) {
		c.barrier.forget(e.Object.GetName())
		c.backoff.forget(e.Object.GetName())
		c.departures.forget(e.Object.GetName())
		next.Delete(ctx, e, q)
	}
	return fed
}

// queue is the work queue.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// requests are Interruptions to reconcile, with their priority in the queue.
type requests map[string]int

// enqueue adds to the queue the Interruptions that an object concerns.
func enqueue[O any](concerned func(context.Context, O) requests) handler.TypedFuncs[O, reconcile.Request] {
	add := func(ctx context.Context, o O, q queue) {
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
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[O], q queue) {
			add(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[O], q queue) {
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[O], q queue) {
			add(ctx, e.Object, q)
		},
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[O], q queue) {
			add(ctx, e.Object, q)
		},
	}
}

// priority ranks an Interruption in the queue.
func (c *Controller) priority(ctx context.Context, in *v1beta1.Interruption) int {
	node, err := c.Nodes.NodeByInstance(ctx, in.Spec.InstanceID)
	return record.Priority(in, node != nil || err != nil)
}

func (c *Controller) itself(ctx context.Context, o client.Object) requests {
	in, ok := o.(*v1beta1.Interruption)
	if !ok {
		return nil
	}
	return requests{in.Name: c.priority(ctx, in)}
}

func (c *Controller) ofNode(ctx context.Context, node client.Object) requests {
	all := c.ofNodeName(ctx, node.GetName())
	if n, ok := node.(*corev1.Node); ok { // the record may name another node, or none
		maps.Copy(all, c.ofName(ctx, nodeindex.InstanceID(n)))
	}
	return all
}

func (c *Controller) ofNodeName(ctx context.Context, name string) requests {
	return c.unfinished(ctx, func(*v1beta1.Interruption) bool { return true }, client.MatchingFields{byNode: name})
}

// byNode is the index of Interruptions by node; it is no path of the object.
const byNode = "lifeboat.node"

// nodesOf are the keys of an Interruption in that index.
func nodesOf(o client.Object) []string {
	in, ok := o.(*v1beta1.Interruption)
	if !ok {
		return nil
	}
	return record.NodeNames(in)
}

// unfinished returns the Interruptions that match and are not finished. It reads the cache
// without copies: there may be thousands.
func (c *Controller) unfinished(ctx context.Context, matches func(*v1beta1.Interruption) bool, only ...client.ListOption) requests {
	var list v1beta1.InterruptionList
	if err := c.Client.List(ctx, &list, append(only, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "listing interruptions from the cache")
		return nil
	}
	found := requests{}
	for i := range list.Items {
		if in := &list.Items[i]; !notice.Finished(in) && matches(in) {
			found[in.Name] = c.priority(ctx, in)
		}
	}
	return found
}
