package drain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// boot is a reclaim of a node whose replacement takes some time. Successors have no node before.
type boot struct {
	web, db      int // pods of a Deployment and of a StatefulSet, all on the node
	grace, takes time.Duration
	starts       time.Duration // of a successor
	atATime      int           // the maxUnavailable of both budgets
	strategy     v1beta1.Strategy
}

func (b boot) String() string {
	return fmt.Sprintf("%d web and %d db with grace %s, %d at a time, ready %s after a boot of %s", b.web, b.db, b.grace, b.atATime, b.starts, b.takes)
}

// world builds the node, two minutes before its end.
func (b boot) world() *world {
	w := newWorld(1)
	w.fleets, w.lifts = nil, nil
	grace := int64(b.grace / time.Second)
	in := scenario{Strategy: b.strategy, Deadline: &deadlineIn{In: metav1.Duration{Duration: 2 * time.Minute}}}
	for i := range b.web {
		in.Pods = append(in.Pods, podIn{Name: fmt.Sprintf("web-%d", i), App: "web", Set: "rs-web", Grace: &grace})
	}
	for i := range b.db {
		in.Pods = append(in.Pods, podIn{Name: fmt.Sprintf("db-%d", i), App: "db", Owner: "StatefulSet/db", Grace: &grace})
	}
	for _, app := range []string{"web", "db"} {
		in.Budgets = append(in.Budgets, budgetIn{Name: app, App: app})
	}
	if b.web > 0 {
		in.Sets = []setIn{{Name: "rs-web", Replicas: int32(b.web), Ready: int32(b.web), Version: "1"}}
		w.fleets = []*fleet{{app: "web", starts: []time.Duration{b.starts}, scales: map[time.Time]int32{}}}
	}
	w.facts, w.starts, w.away, w.arrives = in.facts(), b.starts, map[string]int32{}, map[string][]time.Time{}
	w.linkFleets(in)
	w.asked, w.ends, w.left, w.granted, w.work = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}, map[string]granted{}, map[string]time.Duration{}
	for _, p := range w.facts.Pods {
		w.work[p.Name] = b.grace
	}
	for i, n := range []int{b.web, b.db} {
		w.facts.Budgets[i].ExpectedPods, w.facts.Budgets[i].DesiredHealthy = int32(n), int32(max(0, n-b.atATime))
	}
	w.boots = noon.Add(b.takes)
	w.count()
	return w
}

// awaits makes the pods wait for the replacement, and says when it is expected.
func (w *world) awaits(expected time.Time) {
	w.facts.Gates, w.lifts, w.facts.CapacityAt = []drain.Gate{{Why: "its replacement is starting"}}, []time.Time{w.boots}, expected
}

// drained is what a drain did.
type drained struct {
	overridden int
	least      int32 // pods of the Deployment that were Ready
	early      []string
}

// drain carries out a plan each second.
func (w *world) drain(t *testing.T) drained {
	t.Helper()
	var d drained
	for _, f := range w.fleets {
		d.least = *f.set.Spec.Replicas
	}
	for !w.now.After(w.end()) && !t.Failed() {
		plan := drain.NewPlan(w.facts)
		for _, v := range plan.Verdicts {
			if strings.Contains(v.Overrides, "PodDisruptionBudget") {
				d.overridden++
			}
			if (v.Step == drain.StepEvict || v.Step == drain.StepDelete) && w.now.Before(w.boots) && w.now.Before(v.LastCall) {
				d.early = append(d.early, fmt.Sprintf("%s at %s: %s", v.Pod.Name, hour(w.now), v.Reason))
			}
		}
		w.act(t, plan)
		for _, n := range w.ready() {
			d.least = min(d.least, n)
		}
		w.checkLastCalls(t, plan)
		w.tick()
		if len(w.facts.Gates) == 0 {
			w.facts.CapacityAt = time.Time{}
		}
	}
	w.checkEmpty(t)
	return d
}

// A Deployment of six, all on the node, whose budget lets one go at a time: six graces of 30 s are
// more than two minutes. The budget must make none leave before its successor is Ready.
func TestBudgetMakesNoPodLeaveBeforeItsReplacement(t *testing.T) {
	b := boot{web: 6, grace: 30 * time.Second, takes: 45 * time.Second, starts: 10 * time.Second, atATime: 1, strategy: v1beta1.StrategySurge}
	w := b.world()
	w.awaits(noon.Add(time.Minute)) // the default estimate, which is too late
	if d := w.drain(t); d.least < 6 || d.overridden > 0 || len(d.early) > 0 {
		t.Errorf("%s: %d of 6 were Ready, %d overrides, early: %q", b, d.least, d.overridden, d.early)
	}
}

// While there is time for the successors, no pod of a Deployment leaves before its own is Ready,
// whatever budget and boot time. All pods get their whole grace, and leave.
func TestNoPodOfADeploymentLeavesBeforeItsSuccessorIsReady(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := boot{
			web: 1 + r.IntN(8), db: r.IntN(4), grace: time.Duration(5+r.IntN(40)) * time.Second,
			takes: time.Duration(r.IntN(75)) * time.Second, starts: time.Duration(1+r.IntN(20)) * time.Second,
			atATime: 1 + r.IntN(2), strategy: v1beta1.StrategySurge,
		}
		w := b.world()
		w.awaits(noon.Add(time.Duration(r.IntN(90)) * time.Second)) // the estimate may be wrong
		d := w.drain(t)
		const counted = 6 * time.Second // the controllers' counts, and the planner's rounds
		if inTime := 2*time.Minute-w.facts.Margin-b.grace >= b.takes+b.starts+counted; inTime && d.least < int32(b.web) {
			t.Errorf("seed %d: %s: only %d were Ready, early: %q", seed, b, d.least, d.early)
		}
		if t.Failed() {
			return
		}
	}
}

// Pods that cannot be surged leave before the replacement is Ready only where that saves an
// override. With a right estimate, nothing more is overridden than if all had left as soon as
// their budgets allow.
func TestWaitForCapacityAddsNoOverrides(t *testing.T) {
	t.Parallel()
	waited, early := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		b := boot{
			db: 1 + r.IntN(6), grace: time.Duration(5+r.IntN(50)) * time.Second, takes: time.Duration(r.IntN(110)) * time.Second,
			starts: 10 * time.Second, atATime: 1 + r.IntN(2), strategy: v1beta1.StrategyEvict,
		}
		atOnce := b.world().drain(t)
		w := b.world()
		w.awaits(w.boots)
		waits := w.drain(t)
		if waits.overridden > atOnce.overridden {
			t.Errorf("seed %d: %s: %d overrides, and %d if they leave at once", seed, b, waits.overridden, atOnce.overridden)
		}
		if len(waits.early) > 0 {
			early++
			// The same drain, in which all pods wait until the replacement is Ready.
			w = b.world()
			w.awaits(noon.Add(time.Hour))
			gain := 0
			if b.takes > b.grace { // it stops when there is capacity, rather than as soon as it can
				gain = 1
			}
			if patient := w.drain(t); patient.overridden < waits.overridden+gain {
				t.Errorf("seed %d: %s: early %q with %d overrides, and %d if they wait", seed, b, waits.early, waits.overridden, patient.overridden)
			}
		} else {
			waited++
		}
		if t.Failed() {
			return
		}
	}
	if waited < 50 || early < 25 {
		t.Errorf("%d drains waited, %d did not", waited, early)
	}
}
