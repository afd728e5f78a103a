// Package orphan puts nodes back that carry Lifeboat's mark although no
// Interruption is in work for them: a person deleted the record to call the
// whole thing off, or its end was cut short. Their surged pods go back to their
// ReplicaSets.
package orphan

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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Options are what the loop needs.
type Options struct {
	// Client reads nodes and records, from a cache, and writes.
	Client client.Client
	// Pods reads pods, and their ReplicaSets, from the API server itself.
	Pods client.Reader
	// Forget is told of nodes whose record is gone.
	Forget func(node string)
}

// Controller looks after marked nodes.
type Controller struct{ Options }

// New returns the loop.
func New(o Options) *Controller { return &Controller{o} }

// Register adds the loop to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("orphan").
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(markChanged)).
		Watches(&v1alpha1.Interruption{}, handler.EnqueueRequestsFromMapFunc(nodeOf), builder.WithPredicates(ended)).
		Complete(reconcile.Func(c.Reconcile))
}

// Reconcile puts the node back if it is marked and no record of its instance
// is there that is in work. The mark goes last: it is what has a node that was
// not put back wholly looked at again.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := c.Client.Get(ctx, req.NamespacedName, &node); err != nil {
		if apierrors.IsNotFound(err) {
			c.Forget(req.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading the node: %w", err)
	}
	var record v1alpha1.Interruption
	err := c.Client.Get(ctx, types.NamespacedName{Name: nodeindex.InstanceID(&node)}, &record)
	switch {
	case err == nil && !notice.Finished(&record):
		return reconcile.Result{}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("reading the interruption: %w", err)
	}
	c.Forget(node.Name)
	if !marked(&node) {
		return reconcile.Result{}, nil
	}
	undone, err := action.UndoSurges(ctx, c.Client, c.Pods, node.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if _, err := action.Restore(ctx, c.Client, &node); err != nil {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("put back a node that has no Interruption in work", "surgesUndone", undone)
	return reconcile.Result{}, nil
}

func marked(o client.Object) bool {
	_, ok := o.GetAnnotations()[v1alpha1.AnnotationBefore]
	return ok
}

func isFinished(o client.Object) bool {
	record, ok := o.(*v1alpha1.Interruption)
	return ok && notice.Finished(record)
}

func nodeOf(_ context.Context, o client.Object) []reconcile.Request {
	record, ok := o.(*v1alpha1.Interruption)
	if !ok || record.Spec.NodeName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: record.Spec.NodeName}}}
}

var (
	markChanged = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return marked(e.ObjectNew) && !marked(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	// A record that ends may have been acted on once more by a pass that had
	// not seen its end.
	ended = predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return isFinished(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return isFinished(e.ObjectNew) && !isFinished(e.ObjectOld) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
)
