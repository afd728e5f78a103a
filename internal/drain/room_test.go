package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// crowded plays a drain without a hard end in a cluster without room for any successor, in steps of
// five seconds. It returns when each pod was asked to leave.
func crowded(t *testing.T, pods int, budget bool, lasts time.Duration) (map[string]time.Duration, drain.Plan) {
	t.Helper()
	w, grace := newWorld(1), int64(30)
	in := scenario{Strategy: v1beta1.StrategySurge, Sets: []setIn{{Name: "rs-web", Replicas: int32(pods), Ready: int32(pods), Version: "1"}}}
	for i := range pods {
		in.Pods = append(in.Pods, podIn{Name: fmt.Sprintf("web-%02d", i), App: "web", Set: "rs-web", Grace: &grace})
	}
	if budget {
		in.Budgets = []budgetIn{{Name: "web", App: "web", Expected: int32(pods), Desired: int32(pods - 1)}}
	}
	w.lifts, w.fleets, w.facts = nil, []*fleet{{app: "web", starts: []time.Duration{24 * time.Hour}, scales: map[time.Time]int32{}}}, in.facts()
	w.linkFleets(in)
	for _, p := range w.facts.Pods {
		w.work[p.Name] = time.Second
	}
	w.count()
	asked := map[string]time.Duration{}
	var plan drain.Plan
	for w.now.Before(noon.Add(lasts)) {
		plan = drain.NewPlan(w.facts)
		for _, v := range plan.Verdicts {
			if v.Step == drain.StepEvict {
				asked[v.Pod.Name] = w.now.Sub(noon)
			}
		}
		w.act(t, plan)
		for range 5 {
			w.tick()
		}
	}
	return asked, plan
}

// The first surges find no room in five minutes. The others must not be surged for five minutes
// each.
func TestPodsAreEvictedIfTheFirstSurgeFindsNoRoom(t *testing.T) {
	asked, plan := crowded(t, 19, false, 8*time.Minute)
	if len(asked) != 19 || !plan.Empty() {
		t.Errorf("%d of 19 pods were asked to leave in 8 min: %v", len(asked), asked)
	}
	for name, after := range asked {
		if after < 5*time.Minute {
			t.Errorf("%s was asked after %s", name, after)
		}
	}
}

// Their budget still holds them, and the reason says what is missing.
func TestBudgetHoldsPodsWithoutRoom(t *testing.T) {
	asked, plan := crowded(t, 6, true, 12*time.Minute)
	if len(asked) > 1 {
		t.Errorf("asked %v, though the budget lets one go", asked)
	}
	held, surged := 0, 0
	for _, v := range plan.Left() {
		switch {
		case strings.Contains(v.Reason, "PodDisruptionBudget web allows 0") && strings.Contains(v.Reason, "an earlier successor has found no room"):
			held++
		case strings.Contains(v.Reason, "its successor has found no room") && strings.Contains(v.Reason, "leaves after the other pods of ReplicaSet rs-web"):
			surged++
		default:
			t.Errorf("%s %s: %s", v.Pod.Name, v.Step, v.Reason)
		}
	}
	if held == 0 || surged == 0 {
		t.Errorf("%d held, %d surged", held, surged)
	}
}
