package drain_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// Pods that wait for do-not-disrupt or for ordinary pods must still leave in batches. The first batch
// must leave so early that the plan does not override their budget.
func TestSharedBudgetsAreRespected(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(seed)
		n, atATime, grace := 2+r.IntN(5), 1+r.IntN(2), int64(5+r.IntN(25))
		need := time.Duration((n+atATime-1)/atATime) * (time.Duration(grace)*time.Second + 10*time.Second)
		in := scenario{
			Deadline: &deadlineIn{In: metav1.Duration{Duration: need + 10*time.Second + time.Duration(r.IntN(100))*time.Second}},
			Budgets:  []budgetIn{{Name: "db", App: "a"}},
		}
		for i := range n {
			p := podIn{Name: fmt.Sprintf("db-%d", i), App: "a", Grace: &grace}
			if r.IntN(4) > 0 {
				p.Annotations = map[string]string{"lifeboat.dev/do-not-disrupt": "true"}
			}
			in.Pods = append(in.Pods, p)
		}
		w.facts, w.starts, w.away, w.arrives = in.facts(), 9*time.Second, map[string]int32{}, map[string][]time.Time{}
		w.fleets, w.lifts = nil, nil
		for _, p := range w.facts.Pods {
			w.work[p.Name] = time.Duration(grace) * time.Second
		}
		w.facts.Budgets[0].ExpectedPods, w.facts.Budgets[0].DesiredHealthy = int32(n), int32(n-atATime)
		w.asked, w.ends, w.left = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
		w.count()
		for !w.now.After(w.end()) && !t.Failed() {
			plan := drain.NewPlan(w.facts)
			if i := slices.IndexFunc(plan.Verdicts, func(v drain.Verdict) bool { return strings.Contains(v.Overrides, "PodDisruptionBudget") }); i >= 0 {
				t.Errorf("seed %d: at %s of %s: %s", seed, hour(w.now), hour(w.end()), plan.Verdicts[i].Reason)
			}
			w.act(t, plan)
			w.tick()
		}
		w.checkEmpty(t)
	}
}
