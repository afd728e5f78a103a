// Package policystatus says of each InterruptionPolicy whether it is in force, and
// what to write instead, and what happens until then, where it is not.
package policystatus

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// longestMessage is the API's limit of a condition message (metav1.Condition),
// in characters.
const longestMessage = 32768

// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptionpolicies/status,verbs=patch

// Controller reconciles InterruptionPolicies.
type Controller struct{ client client.Client }

// New returns the controller.
func New(c client.Client) *Controller { return &Controller{client: c} }

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		For(&v1beta1.InterruptionPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// Reconcile sets the condition Accepted.
func (c *Controller) Reconcile(ctx context.Context, p *v1beta1.InterruptionPolicy) (reconcile.Result, error) {
	condition := metav1.Condition{
		Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonValid,
		Message: "in force", ObservedGeneration: p.Generation,
	}
	if wrong := policy.Validate(p.Spec); len(wrong) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1beta1.ReasonInvalid
		follows := "; until it is corrected, " + effect(p.Spec)
		condition.Message = notice.Cut("not in force: "+strings.Join(wrong, "; "), longestMessage-len(follows)) + follows
	}
	before := p.DeepCopy()
	meta.SetStatusCondition(&p.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return reconcile.Result{}, nil
	}
	base := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(c.client.Status().Patch(ctx, p, base)); err != nil {
		return reconcile.Result{}, fmt.Errorf("setting the condition Accepted: %w", err)
	}
	return reconcile.Result{}, nil
}

// effect describes what an invalid policy still does.
func effect(spec v1beta1.InterruptionPolicySpec) string {
	if len(policy.ValidateNodes(spec)) > 0 {
		return "it selects no node, and other policies and the built-in defaults rule"
	}
	return "the built-in defaults rule on the nodes that it selects: they need approval, except where the instance goes in any case"
}
