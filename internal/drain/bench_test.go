package drain_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// largeNode is a node with many pods: two per app, a budget for each of the first apps, and
// do-not-disrupt on every tenth pod.
func largeNode(pods, budgets int, strategy v1beta1.Strategy) drain.Facts {
	in := scenario{Deadline: &deadlineIn{In: metav1.Duration{Duration: 2 * time.Minute}}, Strategy: strategy}
	for i := range budgets {
		in.Budgets = append(in.Budgets, budgetIn{Name: fmt.Sprintf("pdb-%d", i), App: fmt.Sprintf("app-%d", i), Allowed: int32(i % 3), Healthy: 5, Desired: 5 - int32(i%3), Expected: 5})
	}
	for i := range pods {
		p := podIn{Name: fmt.Sprintf("pod-%03d", i), App: fmt.Sprintf("app-%d", i/2)}
		if i%10 == 0 {
			p.Annotations = map[string]string{"lifeboat.dev/do-not-disrupt": "true"}
		}
		if strategy == v1beta1.StrategySurge {
			p.Set = p.App
			if i%2 == 0 {
				in.Sets = append(in.Sets, setIn{Name: p.App, Replicas: 3, Ready: 3})
			}
			if i%4 == 1 {
				p.Surged = &surgedIn{Ago: metav1.Duration{Duration: 10 * time.Second}}
			}
		}
		in.Pods = append(in.Pods, p)
	}
	if strategy == v1beta1.StrategySurge {
		in.Workloads = []v1beta1.Workload{
			{MatchOwnerKinds: []string{"StatefulSet"}, Order: v1beta1.OrderLast},
			{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-3"}}, Order: v1beta1.OrderFirst},
		}
	}
	return in.facts()
}

func BenchmarkNewPlan(b *testing.B) {
	for _, c := range []struct {
		pods, budgets int
		strategy      v1beta1.Strategy
	}{{110, 50, ""}, {110, 0, ""}, {10, 5, ""}, {110, 50, v1beta1.StrategySurge}, {10, 5, v1beta1.StrategySurge}} {
		b.Run(fmt.Sprintf("%dPods%dBudgets%s", c.pods, c.budgets, c.strategy), func(b *testing.B) {
			facts := largeNode(c.pods, c.budgets, c.strategy)
			b.ReportAllocs()
			for b.Loop() {
				drain.NewPlan(facts)
			}
		})
	}
}

// BenchmarkStorm plans each of 1,000 nodes with 10 pods once.
func BenchmarkStorm(b *testing.B) {
	nodes := make([]drain.Facts, 1000)
	for i := range nodes {
		nodes[i] = largeNode(10, 5, v1beta1.StrategySurge)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, facts := range nodes {
			drain.NewPlan(facts)
		}
	}
}
