package drain_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// simulateWorlds simulates each world and calls test at some moments.
func simulateWorlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	ofWorlds(t, worlds/4, func(t *testing.T, w *world) {
		for moment := range 40 {
			if moment%13 == 0 {
				test(t, w)
			}
			if w.act(t, drain.NewPlan(w.facts)); w.now.After(w.end()) || t.Failed() {
				return
			}
			w.tick()
		}
	})
}

func byName(p drain.Plan) map[string]drain.Verdict {
	m := map[string]drain.Verdict{}
	for _, v := range p.Verdicts {
		m[v.Pod.Name] = v
	}
	return m
}

func acts(v drain.Verdict) bool {
	return v.Step == drain.StepEvict || v.Step == drain.StepDelete || v.Step == drain.StepSurge
}

// An action for one pod must not depend on whether another pod has do-not-disrupt.
func TestHeldPodDelaysNoOther(t *testing.T) {
	t.Parallel()
	simulateWorlds(t, func(t *testing.T, w *world) {
		before := byName(drain.NewPlan(w.facts))
		i := w.rand.IntN(len(w.facts.Pods) + 1)
		if i == len(w.facts.Pods) {
			return
		}
		held := w.facts
		held.Pods = append(held.Pods[:0:0], held.Pods...)
		q := held.Pods[i].DeepCopy()
		q.Annotations = maps.Clone(q.Annotations)
		if q.Annotations == nil {
			q.Annotations = map[string]string{}
		}
		q.Annotations[v1beta1.AnnotationDoNotDisrupt] = "true"
		held.Pods[i] = q
		for name, v := range byName(drain.NewPlan(held)) {
			if name != q.Name && acts(before[name]) && !acts(v) {
				t.Errorf("%s: with %s held\n%s: %s\nwithout\n%s: %s", hour(w.now), q.Name, v.Step, v.Reason, before[name].Step, before[name].Reason)
			}
		}
	})
}

// With a later deadline no pod gets a shorter grace, nothing more is overridden, and every last
// call moves by the same amount.
func TestMoreTimeNeverWorsensPlan(t *testing.T) {
	t.Parallel()
	simulateWorlds(t, func(t *testing.T, w *world) {
		if w.hard().IsZero() || w.facts.DoNotDisrupt == v1beta1.DoNotDisruptRespect {
			return
		}
		more := time.Duration(1+w.rand.IntN(60)) * time.Second
		later := w.facts
		later.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(w.hard().Add(more)), Type: v1beta1.DeadlineHard}
		before := byName(drain.NewPlan(w.facts))
		for name, v := range byName(drain.NewPlan(later)) {
			was := before[name]
			worse := v.Overrides != "" && !strings.Contains(was.Overrides, v.Overrides)
			worse = worse || (v.GraceSeconds != nil && (was.GraceSeconds == nil || *was.GraceSeconds > *v.GraceSeconds))
			worse = worse || (!was.LastCall.IsZero() && !v.LastCall.Equal(was.LastCall.Add(more)))
			worse = worse || (v.Step == drain.StepDelete && was.Step != drain.StepDelete)
			if worse {
				t.Errorf("%s: with %s more\n%s: %s (last call %s)\nwithout\n%s: %s (last call %s)", hour(w.now), more,
					v.Step, v.Reason, hour(v.LastCall), was.Step, was.Reason, hour(was.LastCall))
			}
		}
	})
}

// Under a gate the plan does only what the deadline forces, and it does that under a gate too. A
// gate that has ended has no effect.
func TestGatesHoldPodsUntilLastCall(t *testing.T) {
	t.Parallel()
	simulateWorlds(t, func(t *testing.T, w *world) {
		if w.facts.DoNotDisrupt == v1beta1.DoNotDisruptRespect {
			return
		}
		shut := w.facts
		shut.Gates = []drain.Gate{{Why: "shut"}}
		for _, v := range drain.NewPlan(shut).Verdicts {
			due := !v.LastCall.IsZero() && !w.now.Before(v.LastCall)
			leaving := v.Pod.DeletionTimestamp != nil
			switch {
			case due && !acts(v):
				t.Errorf("%s: %s waits past its last call: %s", hour(w.now), v.Pod.Name, v.Reason)
			case !due && !leaving && acts(v) && !strings.Contains(v.Reason, "leave after it") && !alone(w, v):
				t.Errorf("%s: %s goes through a gate: %s", hour(w.now), v.Pod.Name, v.Reason)
			}
		}
		over := w.facts
		over.Gates = append(over.Gates[:len(over.Gates):len(over.Gates)], drain.Gate{Why: "over", Until: w.now})
		if a, b := written(drain.NewPlan(w.facts)), written(drain.NewPlan(over)); !equal(a, b) {
			t.Errorf("%s: a gate that has ended changes the plan", hour(w.now))
		}
	})
}

// alone reports whether the pod may leave before its last call because of other pods that share
// its budget: its reason need not say so.
func alone(w *world, v drain.Verdict) bool {
	for _, b := range w.facts.Budgets {
		if covers(b, v.Pod) && b.ExpectedPods > b.DesiredHealthy {
			return !v.LastCall.IsZero()
		}
	}
	return false
}

func equal(a, b planOut) bool {
	if a.WakeAt != b.WakeAt || len(a.Verdicts) != len(b.Verdicts) {
		return false
	}
	for i := range a.Verdicts {
		if a.Verdicts[i].Pod != b.Verdicts[i].Pod || a.Verdicts[i].Step != b.Verdicts[i].Step || a.Verdicts[i].Reason != b.Verdicts[i].Reason {
			return false
		}
	}
	return true
}

// Without a deadline, a surged pod must be asked to leave within five minutes, unless another
// rule holds it. The state of its successor and its ReplicaSet does not matter.
func TestSurgedPodAlwaysLeaves(t *testing.T) {
	t.Parallel()
	ofWorlds(t, worlds/4, func(t *testing.T, w *world) {
		if len(w.fleets) == 0 {
			return
		}
		w.facts.Deadline, w.facts.Budgets, w.facts.Gates, w.lifts = nil, nil, nil, nil
		w.facts.DoNotDisrupt, w.facts.Strategy = v1beta1.DoNotDisruptIgnore, v1beta1.StrategySurge
		w.facts.Workloads = nil
		for _, f := range w.fleets {
			if w.rand.IntN(2) == 0 {
				f.starts = []time.Duration{time.Hour} // there is no room
			}
		}
		var plan drain.Plan
		for !w.now.After(noon.Add(8*time.Minute)) && !t.Failed() {
			if plan = drain.NewPlan(w.facts); plan.Empty() {
				break
			}
			w.act(t, plan)
			for range 5 {
				w.tick()
			}
		}
		for _, v := range plan.Left() {
			if o, ok := drain.SurgedFrom(v.Pod); ok {
				if _, asked := w.asked[v.Pod.Name]; !asked && w.now.Sub(o.Time) > 5*time.Minute+10*time.Second {
					t.Errorf("%s: %s, surged at %s, was never asked to leave: %s", hour(w.now), v.Pod.Name, hour(o.Time), v.Reason)
				}
			}
		}
	})
}

// The random worlds must reach every rule. Otherwise the properties prove nothing about it.
func TestRandomWorldsCoverEveryRule(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	phrases := []string{
		"its successor is started first", "its successor is Ready", "its successor is not Ready yet", "its successor is not Ready, but",
		"is gone; ", "is scaled to zero", "has not let go", "has not recounted its pods", "it will be surged, but",
		"not surged: it is not Ready", "strategy Recreate", "middle of a rollout", "not surged: this is its last call",
		"those whose order is First", "its order is Last", "it is critical", "policy leaves it where it is", "hook 0 runs", "hook 0 runs, and hook 1 runs",
		"leave after it", "deleted at its last call", "do-not-disrupt holds it", "which is long enough",
	}
	ofWorlds(t, 600, func(t *testing.T, w *world) {
		for range 12 {
			plan := drain.NewPlan(w.facts)
			for _, v := range plan.Verdicts {
				for _, phrase := range phrases {
					if strings.Contains(v.Reason, phrase) {
						seen[phrase]++
					}
				}
			}
			w.act(t, plan)
			for range 1 + w.rand.IntN(8) {
				w.tick()
			}
		}
	})
	for _, phrase := range phrases {
		if seen[phrase] == 0 {
			t.Errorf("no verdict says %q", phrase)
		}
	}
}
