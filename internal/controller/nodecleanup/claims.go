package nodecleanup

import (
	"context"
	"fmt"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// lookAgain is the requeue interval after a conflict.
const lookAgain = 250 * time.Millisecond

// Claims releases replacements whose Interruption is gone or finished. They are
// regular nodes then and must not stay protected from disruption.
type Claims struct {
	Client client.Client
	// All returns the replacement NodeClaims.
	All func() []*replacement.Claim
}

// byReplaced is the index of Nodes by the instance that they replace; it is no path of the object.
const byReplaced = "lifeboat.replaces"

func replacedOf(o client.Object) []string {
	if instanceID := o.GetLabels()[v1beta1.LabelReplacesInstance]; instanceID != "" {
		return []string{instanceID}
	}
	return nil
}

// Register adds the controller to a manager. changed yields the instances whose
// replacements have changed.
func (c *Claims) Register(mgr ctrl.Manager, changed <-chan event.TypedGenericEvent[string]) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Node{}, byReplaced, replacedOf); err != nil {
		return fmt.Errorf("indexing nodes by the instance that they replace: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("orphaned-replacement").
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(replacedBy), builder.WithPredicates(replaces)).
		Watches(&v1beta1.Interruption{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(over)).
		WatchesRawSource(source.Channel(changed, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, instanceID string) []reconcile.Request { return request(instanceID) },
		))).
		Complete(reconcile.Func(c.Reconcile))
}

// Reconcile releases the replacements of an instance without an active
// Interruption. A Node may have registered with the protection after its
// NodeClaim lost it, so the Nodes are checked as well.
func (c *Claims) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var in v1beta1.Interruption
	err := c.Client.Get(ctx, types.NamespacedName{Name: req.Name}, &in)
	switch {
	case err == nil && !notice.Finished(&in):
		return reconcile.Result{}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("reading Interruption: %w", err)
	}
	released := 0
	for _, claim := range c.All() {
		if claim.Replaces() != req.Name || claim.Deleting {
			continue
		}
		switch err := mutate.Release(ctx, c.Client, claim); {
		case apierrors.IsConflict(err):
			return reconcile.Result{RequeueAfter: lookAgain}, nil // the watch is stale
		case err != nil:
			return reconcile.Result{}, err
		}
		released++
	}
	var nodes corev1.NodeList
	// Not by label: the cache would compare every node, and a new leader looks at every finished
	// Interruption.
	if err := c.Client.List(ctx, &nodes, client.MatchingFields{byReplaced: req.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing nodes of replacements: %w", err)
	}
	for i := range nodes.Items {
		if err := mutate.ReleaseNode(ctx, c.Client, nodes.Items[i].Name); err != nil {
			return reconcile.Result{}, err
		}
		released++
	}
	if released > 0 {
		log.FromContext(ctx).Info("released replacement without an active Interruption", "instance", req.Name)
	}
	return reconcile.Result{}, nil
}

func request(instanceID string) []reconcile.Request {
	if instanceID == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: instanceID}}}
}

func replacedBy(_ context.Context, o client.Object) []reconcile.Request {
	return request(o.GetLabels()[v1beta1.LabelReplacesInstance])
}

var (
	replaces = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetLabels()[v1beta1.LabelReplacesInstance] != "" },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetLabels()[v1beta1.LabelReplacesInstance] != e.ObjectOld.GetLabels()[v1beta1.LabelReplacesInstance]
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	// over passes records that are deleted or finished.
	over = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isFinished(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return isFinished(e.ObjectNew) && !isFinished(e.ObjectOld) },
	}
)
