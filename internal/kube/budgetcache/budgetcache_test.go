package budgetcache

import (
	"context"
	"fmt"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// informers is a cache with an informer of budgets; nil: one that has no indexer.
type informers struct {
	cache.Informers
	budgets toolscache.Indexer
}

func (i informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if i.budgets == nil {
		return nil, nil
	}
	return informer{indexer: i.budgets}, nil
}

type informer struct {
	cache.Informer
	indexer toolscache.Indexer
}

func (i informer) GetIndexer() toolscache.Indexer { return i.indexer }

// budget has a selector with that many values.
func budget(namespace, name string, values int) *policyv1.PodDisruptionBudget {
	in := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn}
	for i := range values {
		in.Values = append(in.Values, fmt.Sprint("app-", i))
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"a": strings.Repeat("x", 63)},
			Annotations: map[string]string{"a": strings.Repeat("x", 200_000)},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in}}},
	}
}

// cached is a cache as the informers of lifeboatd fill it.
func cached(t testing.TB, budgets ...*policyv1.PodDisruptionBudget) informers {
	t.Helper()
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	for _, b := range budgets {
		object, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return informers{budgets: store}
}

func TestListCachedReturnsOneNamespaceWithoutCopies(t *testing.T) {
	c := cached(t, budget("shop", "web", 1), budget("shop", "db", 1), budget("tenant", "other", 1))
	for range 2 {
		all, err := ListCached(c)(t.Context(), "shop")
		if err != nil || len(all) != 2 || all[0].Namespace != "shop" || all[1].Namespace != "shop" {
			t.Fatalf("got %v, error %v", all, err)
		}
		object, _, _ := c.budgets.GetByKey("shop/" + all[0].Name)
		if object.(*Object).Budget != all[0] {
			t.Error("the cached budget is copied")
		}
	}
	if _, err := ListCached(informers{})(t.Context(), "shop"); err == nil {
		t.Error("an informer without an indexer gave no error")
	}
}

func TestListWithReadsTheSame(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(budget("shop", "web", 1), budget("tenant", "other", 1)).Build()
	all, err := ListWith(c)(t.Context(), "shop")
	if err != nil || len(all) != 1 || all[0].Name != "web" {
		t.Errorf("got %v, error %v", all, err)
	}
}

func TestUnreadCountsBudgetsOfEachNamespace(t *testing.T) {
	all := []*policyv1.PodDisruptionBudget{budget("shop", "web", 1), budget("large", "a", 15_000), budget("large", "b", 1)}
	for i := range 3000 {
		all = append(all, budget("many", fmt.Sprint("b-", i), 1))
	}
	if unread, err := Unread(t.Context(), cached(t, all...)); err != nil || unread != 3001 {
		t.Errorf("%d are not read (%v), want the large one and the 3000 of a namespace", unread, err)
	}
}

func TestParseIsIdempotent(t *testing.T) {
	once, _ := Parse(budget("shop", "web", 1))
	twice, err := Parse(once)
	if err != nil || once != twice {
		t.Errorf("got %v (%v)", twice, err)
	}
	if copied := once.(*Object).DeepCopyObject().(*Object); copied.Budget != once.(*Object).Budget || copied.Name != "web" {
		t.Errorf("got %+v", copied)
	}
}
