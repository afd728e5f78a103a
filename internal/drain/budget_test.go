package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// abusive are budgets of a namespace that each select one of that many apps, none of which exists.
func abusive(namespace string, budgets, values int) []*drain.Budget {
	var all []*drain.Budget
	in := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn}
	for i := range values {
		in.Values = append(in.Values, fmt.Sprintf("%063d", i))
	}
	for i := range budgets {
		all = append(all, drain.NewBudget(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("abuse-%05d", i)},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2},
		}))
	}
	return all
}

func TestAbsurdBudgetsHoldOnlyThePodsOfTheirNamespace(t *testing.T) {
	for name, budgets := range map[string][]*drain.Budget{
		"a selector of 15,000 values": abusive("tenant", 1, 15_000),
		"many of them":                abusive("tenant", 200, 15_000),
		"3,000 small budgets":         abusive("tenant", 3000, 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := drain.Facts{Now: noon, Deadline: notice.At(noon.Add(2*time.Minute), v1beta1.DeadlineHard), Margin: 10 * time.Second, Budgets: budgets}
			unready := podIn{Name: "unready", Namespace: "tenant", NotReady: true}.pod()
			f.Pods = []*corev1.Pod{podIn{Name: "own", Namespace: "tenant"}.pod(), unready, podIn{Name: "other", Namespace: "shop"}.pod()}
			for _, v := range drain.NewPlan(f).Verdicts {
				switch {
				case v.Pod.Name == "other" && v.Step != drain.StepEvict:
					t.Errorf("the pod of another namespace: %s, %s", v.Step, v.Reason)
				case v.Pod.Name != "other" && (v.Step != drain.StepWaits || !strings.Contains(v.Reason, "abuse-00000 is not read")):
					t.Errorf("%s: %s, %s", v.Pod.Name, v.Step, v.Reason)
				}
			}
			f.Now = f.Deadline.Time.Add(-40 * time.Second)
			for _, v := range drain.NewPlan(f).Verdicts {
				if v.Pod.Name != "other" && v.Step != drain.StepDelete {
					t.Errorf("%s at its last call: %s, %s", v.Pod.Name, v.Step, v.Reason)
				}
			}
			if drain.Unread(budgets) != len(budgets) {
				t.Errorf("%d of %d count as not read", drain.Unread(budgets), len(budgets))
			}
		})
	}
}

func TestUsualBudgetsAreRead(t *testing.T) {
	if unread := drain.Unread(abusive("shop", 1000, 2)); unread != 0 {
		t.Errorf("%d of 1,000 usual budgets are not read", unread)
	}
}

// BenchmarkAbsurdBudgets is a pass over a node with 30 pods of the namespace.
func BenchmarkAbsurdBudgets(b *testing.B) {
	for _, c := range []struct{ budgets, values int }{{200, 15_000}, {2000, 15_000}, {1000, 2}} {
		b.Run(fmt.Sprintf("%dBudgetsOf%dValues", c.budgets, c.values), func(b *testing.B) {
			f := drain.Facts{Now: noon, Deadline: notice.At(noon.Add(2*time.Minute), v1beta1.DeadlineHard), Budgets: abusive("tenant", c.budgets, c.values)}
			for i := range 30 {
				f.Pods = append(f.Pods, podIn{Name: fmt.Sprint("pod-", i), App: "web", Namespace: "tenant"}.pod())
			}
			for b.Loop() {
				drain.NewPlan(f)
			}
		})
	}
}
