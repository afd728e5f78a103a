package nodegroup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodegroups,verbs=list;watch;patch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodegroups/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// concurrency is how many groups are reconciled at the same time.
const concurrency = 4

// Register adds the controller to a manager. changed yields the names of
// changed Auto Scaling groups.
func (c *Controller) Register(mgr ctrl.Manager, changed <-chan event.TypedGenericEvent[string]) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodegroup").
		For(&v1beta1.NodeGroup{}, builder.WithPredicates(mine)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(c.ofNode), builder.WithPredicates(unlabelled)).
		WatchesRawSource(source.Channel(changed, handler.TypedEnqueueRequestsFromMapFunc(c.ofGroup))).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(reconcile.Func(c.reconcile))
}

var (
	// Status updates by the controller itself must not trigger a reconcile.
	mine = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	})
	// A new node, or one that just got its provider id, may need the label.
	unlabelled = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetLabels()[v1beta1.LabelNodeGroup] == "" },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok1 := e.ObjectOld.(*corev1.Node)
			is, ok2 := e.ObjectNew.(*corev1.Node)
			return ok1 && ok2 && is.Labels[v1beta1.LabelNodeGroup] == "" &&
				(was.Spec.ProviderID != is.Spec.ProviderID || was.Labels[v1beta1.LabelNodeGroup] != "")
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
)

func (c *Controller) ofNode(ctx context.Context, o client.Object) []reconcile.Request {
	node, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	id := nodeindex.InstanceID(node)
	if id == "" {
		return nil
	}
	member, ok, _ := c.Watch.Member(id)
	if !ok {
		return nil // the watch reports the group when it sees the instance
	}
	return c.ofGroup(ctx, member.Group)
}

// ofGroup returns the objects that manage an Auto Scaling group.
func (c *Controller) ofGroup(ctx context.Context, group string) []reconcile.Request {
	var all v1beta1.NodeGroupList
	if c.Client.List(ctx, &all) != nil {
		return nil // the cache cannot fail, and all objects are requeued periodically
	}
	var out []reconcile.Request
	for i := range all.Items {
		if nodegroup.Name(&all.Items[i]) == group {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: all.Items[i].Name}})
		}
	}
	return out
}
