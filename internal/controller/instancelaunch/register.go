package instancelaunch

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodegroups,verbs=list;watch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Register adds the controller to a manager, and enqueues it when relevant fields of nodes,
// NodeGroups and Interruptions change.
func (s *Sweep) Register(mgr ctrl.Manager) error {
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("adding the loop: %w", err)
	}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}} // many changes cause one pass
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("launch").
		Watches(&corev1.Node{}, all, builder.WithPredicates(nodeNews)).
		Watches(&v1beta1.NodeGroup{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1beta1.Interruption{}, all, builder.WithPredicates(recordNews)).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			s.Touch()
			return reconcile.Result{}, nil
		}))
}

var (
	nodeNews = predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*corev1.Node)
			is, also := e.ObjectNew.(*corev1.Node)
			return ok && also && differ(was, is)
		},
	}
	recordNews = predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return isFinished(e.ObjectNew) && !isFinished(e.ObjectOld) },
	}
)

// differ reports whether two versions of a node differ in a relevant field. The heartbeat is
// relevant while the node has the startup taint: a hook may wait for it.
func differ(was, is *corev1.Node) bool {
	return nodeindex.Ready(was) != nodeindex.Ready(is) ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		!equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) ||
		was.Spec.ProviderID != is.Spec.ProviderID ||
		isTainted(is) && !slices.Equal(was.Status.Conditions, is.Status.Conditions)
}

func isFinished(o client.Object) bool {
	in, ok := o.(*v1beta1.Interruption)
	return ok && notice.Finished(in)
}
