// Package nodecleanup restores nodes that carry Lifeboat's mark without an active
// Interruption: a person deleted the record to cancel it, or its clean-up was
// interrupted. Their surged pods return to their ReplicaSets.
package nodecleanup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Options configure the controller.
type Options struct {
	// Client reads nodes and records from a cache, and writes.
	Client client.Client
	// Pods reads pods and ReplicaSets from the API server directly.
	Pods client.Reader
	// Forget is called with nodes whose record is gone.
	Forget func(node string)
}

// Controller restores marked nodes.
type Controller struct{ Options }

// New returns the controller.
func New(o Options) *Controller { return &Controller{o} }

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("orphan").
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(markChanged)).
		Watches(&v1beta1.Interruption{}, handler.EnqueueRequestsFromMapFunc(nodesOf), builder.WithPredicates(ended)).
		Complete(reconcile.Func(c.Reconcile))
}

// Reconcile restores the node if it is marked and its instance has no active
// record. The mark is removed last, so that a partly restored node is
// reconciled again.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := c.Client.Get(ctx, req.NamespacedName, &node); err != nil {
		if apierrors.IsNotFound(err) {
			c.Forget(req.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading node: %w", err)
	}
	var in v1beta1.Interruption
	err := c.Client.Get(ctx, types.NamespacedName{Name: nodeindex.InstanceID(&node)}, &in)
	switch {
	case err == nil && !notice.Finished(&in):
		return reconcile.Result{}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("reading Interruption: %w", err)
	}
	c.Forget(node.Name)
	if !marked(&node) {
		return reconcile.Result{}, nil
	}
	undone, err := mutate.UndoSurges(ctx, c.Client, c.Pods, node.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if _, err := mutate.Restore(ctx, c.Client, &node); err != nil {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("restored node without an active Interruption", "surgesUndone", undone)
	return reconcile.Result{}, nil
}

func marked(o client.Object) bool {
	_, ok := o.GetAnnotations()[v1beta1.AnnotationOriginalState]
	return ok
}

func isFinished(o client.Object) bool {
	in, ok := o.(*v1beta1.Interruption)
	return ok && notice.Finished(in)
}

func nodesOf(_ context.Context, o client.Object) (requests []reconcile.Request) {
	in, ok := o.(*v1beta1.Interruption)
	if !ok {
		return nil
	}
	for _, name := range record.NodeNames(in) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return requests
}

var (
	markChanged = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return marked(e.ObjectNew) && !marked(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	// A concurrent pass may have acted on a record after its end.
	ended = predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return isFinished(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return isFinished(e.ObjectNew) && !isFinished(e.ObjectOld) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
)
