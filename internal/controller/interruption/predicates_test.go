package interruption

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// The cache delivers budgets as the planner reads them, so whatever it reads starts a pass.
func TestEachChangeOfABudgetThatThePlannerReadsStartsAPass(t *testing.T) {
	always := policyv1.AlwaysAllow
	for name, c := range map[string]struct {
		change func(b *policyv1.PodDisruptionBudget)
		starts bool
	}{
		"disruptionsAllowed":         {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed++ }, true},
		"currentHealthy":             {func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy++ }, true},
		"desiredHealthy":             {func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy++ }, true},
		"expectedPods":               {func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods++ }, true},
		"observedGeneration":         {func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration-- }, true},
		"unhealthyPodEvictionPolicy": {func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always }, true},
		"selector":                   {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["tier"] = "front" }, true},
		"disruptedPods": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptedPods = map[string]metav1.Time{"web-9": metav1.NewTime(start)}
		}, true},
		"conditions": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale",
			}}
		}, true},
		"uid": {func(b *policyv1.PodDisruptionBudget) { b.UID = "another" }, true},
		"labels and annotations": {func(b *policyv1.PodDisruptionBudget) {
			b.Labels, b.Annotations, b.ResourceVersion = map[string]string{"a": "b"}, map[string]string{"a": "b"}, "2"
		}, false},
		"time of a condition": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(time.Hour)),
			}}
		}, false},
	} {
		was := budget(1)
		is := was.DeepCopy()
		c.change(is)
		if got := passes(budgetPredicate, parsed(model.Change{Old: was, New: is})); got != c.starts {
			t.Errorf("%s: starts a pass is %t, want %t", name, got, c.starts)
		}
	}
	if _, ok := parsed(model.Change{New: budget(1)}).New.(*budgetcache.Object); !ok {
		t.Error("the cache does not deliver what the planner reads")
	}
	var _ client.Object = &budgetcache.Object{}
}
