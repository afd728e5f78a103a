package budgetcache

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// BenchmarkLargeBudgets measures what budgets of 15,000 values each cost: the memory of one in the cache, and a
// plan of a node with 30 pods of their namespace. A plan of another namespace reads none of them.
func BenchmarkLargeBudgets(b *testing.B) {
	for _, n := range []int{0, 200, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			stored := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
			before := heap()
			for i := range n {
				o, err := Parse(largeBudget(i))
				if err == nil {
					err = stored.Add(o)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			held := float64(heap()) - float64(before)
			facts := drain.Facts{Now: time.Now(), Pods: thirtyPods("tenant")}
			list := ListCached(informers{budgets: stored})
			for b.Loop() {
				of, err := list(b.Context(), "tenant")
				if err != nil {
					b.Fatal(err)
				}
				facts.Budgets = of
				drain.NewPlan(facts)
			}
			b.ReportMetric(held/float64(max(n, 1)), "B/budget")
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func largeBudget(i int) *policyv1.PodDisruptionBudget {
	values := make([]string, 15_000)
	for k := range values {
		values[k] = fmt.Sprintf("%d-%d", i, k)
	}
	one := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: values}}}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: fmt.Sprint("budget-", i)},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &one},
	}
}

func thirtyPods(namespace string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range 30 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprint("web-", i), UID: "uid", Labels: map[string]string{"app": "web"},
		}})
	}
	return pods
}
