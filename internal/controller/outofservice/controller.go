// Package outofservice sets the taint node.kubernetes.io/out-of-service on the Node of an instance
// that EC2 says is stopped or terminated. Kubernetes then detaches its volumes at once instead of
// after six minutes. It removes the taint when the instance starts again.
package outofservice

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions,verbs=get;list;watch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions/status,verbs=patch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=pauses,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// lookSoon and lookLater are when to ask EC2 again; concurrent questions share one call.
	lookSoon, lookLater = 10 * time.Second, time.Minute
	// conflictRetry is when to look again after a conflict.
	conflictRetry = 250 * time.Millisecond
	// concurrency lets questions about several Nodes share one call to EC2.
	concurrency = 32
)

// Describer describes instances.
type Describer interface {
	Describe(ctx context.Context, instanceID string) (*cloud.Instance, error)
}

// Options configure the controller. All fields but Enabled are required.
type Options struct {
	// Client reads from a cache, and writes. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Nodes  nodeindex.Lister
	Cloud  Describer
	Events events.EventRecorder
	Clock  func() time.Time
	// Enabled sets taints. Otherwise the controller only removes those that it set before.
	Enabled bool
}

// Controller sets and removes the taint.
type Controller struct{ Options }

// New returns the controller.
func New(o Options) *Controller { return &Controller{o} }

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("out-of-service").
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeChanged)).
		Watches(&v1beta1.Interruption{}, handler.EnqueueRequestsFromMapFunc(nodeOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(reconcile.Func(c.Reconcile))
}

// Reconcile sets or removes the taint of one Node, and writes into the Interruption what it did.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f, err := c.observe(ctx, req.NamespacedName)
	if err != nil || f.node == nil {
		return reconcile.Result{}, err
	}
	switch f.next() {
	case leave:
		return reconcile.Result{}, nil
	case wait:
		return reconcile.Result{RequeueAfter: f.patience()}, nil
	case remove:
		return c.clear(ctx, f, "its kubelet reports Ready, or the option is off")
	}
	id := nodeindex.InstanceID(f.node)
	i, err := c.Cloud.Describe(ctx, id)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot ask EC2 whether the instance is off", "instance", id)
		return reconcile.Result{RequeueAfter: f.patience()}, nil
	}
	if _, ours := mutate.IsOutOfService(f.node); !ours {
		return c.set(ctx, f, i)
	}
	if i != nil && !corroborate.PoweredOff(i).Agrees() { // EC2 forgets a terminated instance after an hour
		return c.clear(ctx, f, corroborate.PoweredOff(i).Why)
	}
	return c.report(ctx, f, metav1.ConditionTrue, v1beta1.ReasonOutOfService, tainted(f.node.Name))
}

// observe reads the facts once; node is nil if it is gone.
func (c *Controller) observe(ctx context.Context, name types.NamespacedName) (facts, error) {
	f := facts{enabled: c.Enabled, now: c.Clock()}
	var node corev1.Node
	if err := c.Client.Get(ctx, name, &node); apierrors.IsNotFound(err) {
		return f, nil
	} else if err != nil {
		return f, fmt.Errorf("reading node: %w", err)
	}
	f.node = &node
	id := nodeindex.InstanceID(&node)
	if _, ours := mutate.IsOutOfService(&node); id == "" || nodeindex.Ready(&node) && !ours {
		return f, nil // nearly all Nodes
	}
	var in v1beta1.Interruption
	switch err := c.Client.Get(ctx, types.NamespacedName{Name: id}, &in); {
	case err == nil:
		f.record = &in
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("reading Interruption: %w", err)
	}
	var pauses v1beta1.PauseList
	if err := c.Client.List(ctx, &pauses); err != nil {
		return f, fmt.Errorf("listing pauses: %w", err)
	}
	f.pauses = pauses.Items
	all, err := c.Nodes(ctx)
	for _, other := range all {
		if nodeindex.InstanceID(other) == id {
			f.nodes++
		}
	}
	return f, err
}

// set sets the taint if EC2 and the API server agree. The condition follows in the pass that the
// change of the Node causes, also after a crash.
func (c *Controller) set(ctx context.Context, f facts, i *cloud.Instance) (reconcile.Result, error) {
	var live corev1.Node
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(f.node), &live); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if v := confirmed(&live, i); !v.Agrees() || live.UID != f.node.UID {
		log.FromContext(ctx).V(1).Info("the node is not out of service", "why", v.Why)
		return reconcile.Result{RequeueAfter: f.patience()}, nil
	}
	if err := mutate.SetOutOfService(ctx, c.Client, &live, i.ID); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	} else if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("tainted node as out of service", "instance", i.ID, "state", i.State)
	c.Events.Eventf(&live, f.record, corev1.EventTypeWarning, v1beta1.ReasonOutOfService, "Taint",
		"EC2 says that instance %s is %s: %s", i.ID, i.State, tainted(live.Name))
	return reconcile.Result{RequeueAfter: conflictRetry}, nil
}

func tainted(node string) string {
	return fmt.Sprintf("node %s has the taint %s, so that Kubernetes detaches its volumes at once", node, corev1.TaintNodeOutOfService)
}

// clear removes the taint. The condition comes first: without the taint no pass would write it.
func (c *Controller) clear(ctx context.Context, f facts, why string) (reconcile.Result, error) {
	if f.record != nil && meta.IsStatusConditionTrue(f.record.Status.Conditions, v1beta1.ConditionOutOfService) {
		return c.report(ctx, f, metav1.ConditionFalse, v1beta1.ReasonBackInService, "the taint is removed: "+why)
	}
	if err := mutate.ClearOutOfService(ctx, c.Client, f.node); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("removed the out-of-service taint", "why", why)
	c.Events.Eventf(f.node, nil, corev1.EventTypeNormal, v1beta1.ReasonBackInService, "RemoveTaint",
		"removed the taint %s: %s", corev1.TaintNodeOutOfService, why)
	return reconcile.Result{}, nil
}

// report writes the condition if it says something else, and looks again.
func (c *Controller) report(ctx context.Context, f facts, status metav1.ConditionStatus, reason, message string) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: conflictRetry}
	if status == metav1.ConditionTrue {
		again.RequeueAfter = lookLater
	}
	if f.record == nil {
		return again, nil
	}
	desired := f.record.DeepCopy()
	if !meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionOutOfService, Status: status, Reason: reason, Message: message,
		ObservedGeneration: desired.Generation, LastTransitionTime: metav1.NewTime(f.now),
	}) {
		return again, nil
	}
	base := client.MergeFromWithOptions(f.record, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Status().Patch(ctx, desired, base); apierrors.IsConflict(err) {
		again.RequeueAfter = conflictRetry
	} else if client.IgnoreNotFound(err) != nil {
		return again, fmt.Errorf("setting the condition OutOfService: %w", err)
	}
	return again, nil
}
