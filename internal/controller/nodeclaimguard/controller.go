package nodeclaimguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=list;patch

// withoutKarpenter is when to look again in a cluster that does not serve Karpenter's API.
const withoutKarpenter = time.Minute

// Options configure the controller.
type Options struct {
	// Client reads nodes, policies and Interruptions from a cache, and writes.
	Client client.Client
	// Live reads NodeClaims from the API server.
	Live client.Reader
	// Limit is how long a mark lasts. It is renewed while the controller runs.
	Limit time.Duration
	// Clock is the time.
	Clock func() time.Time
}

// Controller marks NodeClaims. One pass looks at all of them.
type Controller struct{ Options }

// New returns the controller.
func New(o Options) *Controller { return &Controller{o} }

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}} // one pass serves many changes
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclaim-guard").
		Watches(&corev1.Node{}, all, builder.WithPredicates(nodes)).
		Watches(&v1beta1.InterruptionPolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1beta1.Interruption{}, all, builder.WithPredicates(holds)).
		Complete(reconcile.Func(c.Reconcile))
}

// Reconcile brings the marks of all NodeClaims up to date.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	claims := &metav1.PartialObjectMetadataList{}
	claims.SetGroupVersionKind(replacement.KindNodeClaim.GroupVersion().WithKind(replacement.KindNodeClaim.Kind + "List"))
	// From the API server's cache: an older version costs at most one more pass.
	err := c.Live.List(ctx, claims, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: withoutKarpenter}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("listing NodeClaims: %w", err)
	}
	byClaim, held, policies, err := c.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := c.Clock()
	var failed []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		claim.SetGroupVersionKind(replacement.KindNodeClaim)
		if claim.DeletionTimestamp != nil {
			continue
		}
		node := byClaim[claim.UID]
		f := facts{policies: policies, node: node, held: node != nil && held[nodeindex.InstanceID(node)]}
		if value, change := mark(claim.Annotations[v1beta1.AnnotationGuardedUntil], f.guarded(now), now, c.Limit); change {
			failed = append(failed, c.write(ctx, claim, value))
		}
	}
	return reconcile.Result{RequeueAfter: c.Limit / 6}, errors.Join(failed...)
}

// read returns the nodes by the UID of their NodeClaim, the instances that a person holds, and
// the policies.
func (c *Controller) read(ctx context.Context) (byClaim map[types.UID]*corev1.Node, held map[string]bool, _ []v1beta1.InterruptionPolicy, _ error) {
	var nodes corev1.NodeList
	var records v1beta1.InterruptionList
	var policies v1beta1.InterruptionPolicyList
	err := errors.Join(c.Client.List(ctx, &nodes), c.Client.List(ctx, &records), c.Client.List(ctx, &policies))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading nodes, Interruptions and policies: %w", err)
	}
	byClaim, held = map[types.UID]*corev1.Node{}, map[string]bool{}
	for i := range nodes.Items {
		for _, owner := range nodes.Items[i].OwnerReferences {
			byClaim[owner.UID] = &nodes.Items[i]
		}
	}
	for i := range records.Items {
		in := &records.Items[i]
		held[in.Spec.InstanceID] = !notice.Finished(in) && record.Hold(in, c.Clock()) != nil
	}
	return byClaim, held, policies.Items, nil
}

// write sets the mark of a NodeClaim, or removes it.
func (c *Controller) write(ctx context.Context, claim *metav1.PartialObjectMetadata, value string) error {
	var written any = value
	if value == "" {
		written = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "annotations": map[string]any{v1beta1.AnnotationGuardedUntil: written},
	}})
	if err != nil {
		return err
	}
	before := claim.Annotations[v1beta1.AnnotationGuardedUntil]
	err = c.Client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or another one
		return nil
	case err != nil:
		return fmt.Errorf("marking NodeClaim %s: %w", claim.Name, err)
	case (before == "") != (value == ""):
		log.FromContext(ctx).Info("changed the guard of a NodeClaim", "nodeClaim", claim.Name, "guardedUntil", value)
	}
	return nil
}

var (
	// nodes passes what changes the facts about Karpenter's nodes.
	nodes = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(e.Object.GetOwnerReferences()) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := e.ObjectOld, e.ObjectNew
			return len(now.GetOwnerReferences()) > 0 && (len(before.GetOwnerReferences()) == 0 ||
				!maps.Equal(before.GetLabels(), now.GetLabels()) || before.GetDeletionTimestamp() == nil && now.GetDeletionTimestamp() != nil)
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return len(e.Object.GetOwnerReferences()) > 0 },
	}
	// holds passes changes of a person's hold.
	holds = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return holdTime(e.Object) != 0 },
		UpdateFunc: func(e event.UpdateEvent) bool { return holdTime(e.ObjectOld) != holdTime(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return holdTime(e.Object) != 0 },
	}
)

// holdTime is when the latest hold began; zero if there is none.
func holdTime(o client.Object) int64 {
	in, ok := o.(*v1beta1.Interruption)
	if !ok || in.Spec.Hold == nil {
		return 0
	}
	return in.Spec.Hold.Time.UnixMicro()
}
