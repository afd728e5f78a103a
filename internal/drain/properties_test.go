package drain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	ofWorlds(t, worlds, test)
}

func ofWorlds(t *testing.T, n uint64, test func(t *testing.T, w *world)) {
	t.Helper()
	for seed := range n {
		w := newWorld(seed)
		test(t, w)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// hard returns the firm deadline, hard or estimated, or zero.
func (w *world) hard() time.Time {
	if d := w.facts.Deadline; d != nil && d.Type != v1beta1.DeadlineSoft {
		return d.Time.Time
	}
	return time.Time{}
}

// end is when the simulation stops.
func (w *world) end() time.Time {
	if h := w.hard(); !h.IsZero() {
		return h
	}
	return noon.Add(90 * time.Second)
}

// act carries out a plan on an API server without rate limits, and checks each request.
func (w *world) act(t *testing.T, plan drain.Plan) bool {
	t.Helper()
	acted := false
	before := w.ready()
	for _, v := range plan.Verdicts {
		switch v.Step {
		case drain.StepSurge:
			w.checkSurge(t, v)
			w.surge(v)
		case drain.StepEvict:
			if v.Pod.DeletionTimestamp != nil {
				t.Errorf("%s: evicts %s, which was asked to stop before", hour(w.now), v.Pod.Name)
			}
			w.checkReplaced(t, v, before)
			if why := w.evict(v.Pod, v.GraceSeconds); why != "" {
				t.Errorf("%s: evicts %s, which the API server refuses: %s\n%s", hour(w.now), v.Pod.Name, why, v.Reason)
			}
		case drain.StepDelete:
			w.checkDelete(t, v)
			w.remove(v.Pod, v.GraceSeconds)
		default:
			continue
		}
		acted = true
		w.checkGrace(t, v)
	}
	w.count()
	return acted
}

func (w *world) checkDelete(t *testing.T, v drain.Verdict) {
	t.Helper()
	if v.Pod.DeletionTimestamp != nil {
		if v.GraceSeconds == nil || *v.GraceSeconds >= *v.Pod.DeletionGracePeriodSeconds {
			t.Errorf("%s: deletes %s again with no shorter grace: %s", hour(w.now), v.Pod.Name, v.Reason)
		}
		return
	}
	if w.hard().IsZero() || w.now.Before(v.LastCall) || v.Overrides == "" {
		t.Errorf("%s: deletes %s, whose last call is %s and which overrides %q: %s", hour(w.now), v.Pod.Name, hour(v.LastCall), v.Overrides, v.Reason)
	}
}

func (w *world) checkGrace(t *testing.T, v drain.Verdict) {
	t.Helper()
	if v.GraceSeconds == nil {
		return
	}
	room := w.hard().Sub(w.now)
	if got := time.Duration(*v.GraceSeconds) * time.Second; got > max(room, 2*time.Second) || (w.facts.Margin >= time.Second && got > max(room-w.facts.Margin, 2*time.Second)) {
		t.Errorf("%s: %s gets %s, but only %s are left: %s", hour(w.now), v.Pod.Name, got, room, v.Reason)
	}
}

func TestEveryPodHasOneVerdictWithReason(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		plan := drain.NewPlan(w.facts)
		seen := map[string]int{}
		for _, v := range plan.Verdicts {
			seen[v.Pod.Name]++
			if n := len([]rune(v.Reason)); n == 0 || n > 512 {
				t.Errorf("the reason for %s has %d characters: %s", v.Pod.Name, n, v.Reason)
			}
		}
		for _, p := range w.facts.Pods {
			if seen[p.Name] != 1 {
				t.Errorf("%s has %d verdicts", p.Name, seen[p.Name])
			}
		}
		if len(plan.Verdicts) != len(w.facts.Pods) || plan.Empty() != (len(plan.Left()) == 0) {
			t.Errorf("%d verdicts for %d pods; empty %t with %d left", len(plan.Verdicts), len(w.facts.Pods), plan.Empty(), len(plan.Left()))
		}
	})
}

// A record whose pods wait, or whose requests are refused, is planned again and again. A reason that counts
// down would cost a write of the status each time.
func TestReasonsDoNotCountDown(t *testing.T) {
	t.Parallel()
	compared := 0
	eachWorld(t, func(t *testing.T, w *world) {
		now := drain.NewPlan(w.facts)
		if end := w.end(); !end.IsZero() && !w.facts.Now.Add(2*time.Second).Before(end) || !now.WakeAt.IsZero() && !now.WakeAt.After(w.facts.Now.Add(time.Second)) {
			return
		}
		w.facts.Now = w.facts.Now.Add(time.Second)
		later := drain.NewPlan(w.facts)
		for _, v := range now.Verdicts {
			if v.GraceSeconds != nil || !v.LastCall.IsZero() && !w.facts.Now.Before(v.LastCall) { // each second is one of its grace
				continue
			}
			compared++
			if j := slices.IndexFunc(later.Verdicts, func(l drain.Verdict) bool { return l.Pod.UID == v.Pod.UID && l.Step == v.Step }); j < 0 || later.Verdicts[j].Reason != v.Reason {
				t.Errorf("%s: %s %s: %q, and a second later another reason", hour(w.now), v.Step, v.Pod.Name, v.Reason)
			}
		}
	})
	if compared == 0 {
		t.Error("no reason was compared")
	}
}

func TestInputOrderIsIrrelevant(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		want := written(drain.NewPlan(w.facts))
		for range 3 {
			w.rand.Shuffle(len(w.facts.Pods), func(i, j int) {
				w.facts.Pods[i], w.facts.Pods[j] = w.facts.Pods[j], w.facts.Pods[i]
			})
			w.rand.Shuffle(len(w.facts.Budgets), func(i, j int) {
				w.facts.Budgets[i], w.facts.Budgets[j] = w.facts.Budgets[j], w.facts.Budgets[i]
			})
			o := w.facts.Owners
			w.rand.Shuffle(len(o.ReplicaSets), func(i, j int) {
				o.ReplicaSets[i], o.ReplicaSets[j] = o.ReplicaSets[j], o.ReplicaSets[i]
			})
			w.rand.Shuffle(len(o.Deployments), func(i, j int) {
				o.Deployments[i], o.Deployments[j] = o.Deployments[j], o.Deployments[i]
			})
			if diff := cmp.Diff(want, written(drain.NewPlan(w.facts))); diff != "" {
				t.Fatalf("(-before +after)\n%s", diff)
			}
		}
	})
}

// The test simulates each world up to its deadline with a plan every second. act checks that no
// PodDisruptionBudget is broken before the last call, that no pod is asked twice, and that
// graces fit.
func TestDrainSecondBySecond(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		for !w.now.After(w.end()) && !t.Failed() {
			plan := drain.NewPlan(w.facts)
			w.checkWake(t, plan)
			if w.act(t, plan) {
				w.checkSettled(t)
			}
			w.checkLastCalls(t, plan)
			w.tick()
			if plan.Empty() {
				break
			}
		}
		w.checkEmpty(t)
	})
}

// The test simulates each world with a plan only when something changed or WakeAt has come, and
// checks that no action is missed.
func TestDrainWakesAtRequestedTimes(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		var last drain.Plan
		changed := true
		for !w.now.After(w.end()) && !t.Failed() {
			if changed || (!last.WakeAt.IsZero() && !w.now.Before(last.WakeAt)) {
				for last = drain.NewPlan(w.facts); w.act(t, last) && !t.Failed(); {
					last = drain.NewPlan(w.facts)
				}
			} else if w.rand.IntN(4) > 0 {
				// Checking every second without a change would be slow and find nothing
				// more.
			} else if now := drain.NewPlan(w.facts); !slices.EqualFunc(last.Verdicts, now.Verdicts, sameVerdict) {
				t.Errorf("%s: the plan changed before WakeAt (-then +now)\n%s", hour(w.now), cmp.Diff(written(last), written(now)))
			}
			changed = w.tick()
			if last.Empty() {
				break
			}
		}
		w.checkEmpty(t)
	})
}

func sameVerdict(a, b drain.Verdict) bool {
	return a.Pod.Name == b.Pod.Name && a.Step == b.Step && a.Reason == b.Reason && a.LastCall.Equal(b.LastCall) && a.Overrides == b.Overrides
}

// checkWake checks that WakeAt is later than now and not later than the next last call.
func (w *world) checkWake(t *testing.T, plan drain.Plan) {
	t.Helper()
	if !plan.WakeAt.IsZero() && !plan.WakeAt.After(w.now) {
		t.Errorf("%s: wakes at %s", hour(w.now), hour(plan.WakeAt))
	}
	for _, v := range plan.Verdicts {
		if v.LastCall.After(w.now) && (plan.WakeAt.IsZero() || plan.WakeAt.After(v.LastCall)) {
			t.Errorf("%s: wakes at %s, after the last call of %s at %s", hour(w.now), hour(plan.WakeAt), v.Pod.Name, hour(v.LastCall))
		}
	}
}

// checkLastCalls checks that a pod has been asked to stop once its last call has come.
func (w *world) checkLastCalls(t *testing.T, plan drain.Plan) {
	t.Helper()
	for _, v := range plan.Verdicts {
		if v.LastCall.IsZero() || w.now.Before(v.LastCall) {
			continue
		}
		if _, asked := w.asked[v.Pod.Name]; !asked {
			t.Errorf("%s: %s was not asked by its last call at %s: %s", hour(w.now), v.Pod.Name, hour(v.LastCall), v.Reason)
		}
	}
}

// checkSettled checks that a plan made directly after another was carried out repeats none of
// its requests.
func (w *world) checkSettled(t *testing.T) {
	t.Helper()
	for _, v := range drain.NewPlan(w.facts).Verdicts {
		if asked, ok := w.asked[v.Pod.Name]; ok && asked.Equal(w.now) && (v.Step == drain.StepEvict || v.Step == drain.StepDelete) {
			t.Errorf("%s: %s is asked twice: %s", hour(w.now), v.Pod.Name, v.Reason)
		}
	}
}

// checkEmpty checks that no pod is left at a hard deadline, except pods that a policy protects
// and pods whose own grace never fitted. Every pod for which there was time must have had its
// whole grace.
func (w *world) checkEmpty(t *testing.T) {
	t.Helper()
	hard := w.hard()
	if hard.IsZero() || w.facts.DoNotDisrupt == v1beta1.DoNotDisruptRespect {
		return
	}
	for _, v := range drain.NewPlan(w.facts).Left() {
		asked, ok := w.asked[v.Pod.Name]
		if !ok {
			t.Errorf("%s was never asked to stop: %s", v.Pod.Name, v.Reason)
		} else if w.facts.Margin >= 2*time.Second {
			t.Errorf("%s, asked at %s, is still there at the deadline: %s", v.Pod.Name, hour(asked), v.Reason)
		}
	}
	for name, granted := range w.granted {
		if need := min(granted.own, hard.Add(-w.facts.Margin).Sub(noon)); granted.got < need {
			t.Errorf("%s got %s of its grace of %s, though there were %s", name, granted.got, granted.own, need)
		}
	}
}
