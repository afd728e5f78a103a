package app

import (
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
)

// A tenant's budget may be as large as etcd allows. The cache has all budgets of the cluster.
func TestCacheKeepsNoLargeBudget(t *testing.T) {
	huge := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: slices.Repeat([]string{strings.Repeat("x", 60)}, 15_000),
	}}}
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "huge", Annotations: map[string]string{"pad": strings.Repeat("x", 1<<18)}},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &huge},
	}
	found := false
	for object, of := range cacheOptions().ByObject {
		if _, isBudget := object.(*policyv1.PodDisruptionBudget); !isBudget {
			continue
		}
		kept, err := of.Transform(pdb)
		if err != nil {
			t.Fatal(err)
		}
		o, isParsed := kept.(*budgetcache.Object)
		found = isParsed && o.Name == "huge" && len(o.Annotations) == 0
	}
	if !found {
		t.Error("the cache keeps PodDisruptionBudgets as they are")
	}
}
