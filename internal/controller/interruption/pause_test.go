package interruption

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func pauseOf(stops v1beta1.PauseScope, from time.Duration, lasts time.Duration) *v1beta1.Pause {
	return &v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: v1beta1.PauseSpec{
		By: "dana", Stops: stops, StartTime: metav1.NewTime(start.Add(from)), Until: metav1.NewTime(start.Add(from + lasts)),
	}}
}

func (w *world) pausedNow() bool {
	return meta.IsStatusConditionTrue(w.record().Status.Conditions, v1beta1.ConditionPaused)
}

func TestPauseStopsRequestUntilItEnds(t *testing.T) {
	w := newWorld(t, recordOf(requested()), node("a", instance), pod("web-1"), pauseOf(v1beta1.PauseDeferrable, 0, 3*time.Hour))
	w.settle(time.Second)
	if s := w.record().Status; w.node().Spec.Unschedulable || !w.pausedNow() || s.Phase != v1beta1.PhaseScheduled {
		t.Fatalf("cordoned %v, phase %s, %+v", w.node().Spec.Unschedulable, s.Phase, s.Conditions)
	}
	if want := 3*time.Hour - time.Second; w.wake != want {
		t.Errorf("the next pass is due in %s, want %s", w.wake, want)
	}
	for range 5 {
		w.settle(30 * time.Minute)
	}
	if len(w.evictions) > 0 || w.record().Status.CompletionTime != nil {
		t.Fatalf("evicted %v, phase %s", w.evictions, w.record().Status.Phase)
	}
	w.loop = New(w.loop.Options) // a restart loses nothing
	w.settle(30 * time.Minute)
	if len(w.evictions) != 1 || w.pausedNow() {
		t.Errorf("after the pause: evicted %v, paused %v", w.evictions, w.pausedNow())
	}
}

// A drain that has begun stops where it is, and goes on where it was.
func TestPauseStopsDrainInProgress(t *testing.T) {
	w := newWorld(t, recordOf(requested()), node("a", instance), pod("web-1"), pod("web-2"), budget(1))
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Fatalf("evicted %v", w.evictions)
	}
	p := pauseOf(v1beta1.PauseDeferrable, 2*time.Second, time.Hour)
	if err := w.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.stopped("web-1")
	w.setBudget(1)
	for range 5 {
		w.settle(10 * time.Minute)
	}
	if s := w.record().Status; len(w.evictions) != 1 || s.Phase != v1beta1.PhaseDraining || !w.node().Spec.Unschedulable {
		t.Fatalf("evicted %v, phase %s", w.evictions, s.Phase)
	}
	if err := w.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Second)
	if len(w.evictions) != 2 {
		t.Errorf("after the pause: evicted %v", w.evictions)
	}
}

func TestPauseLeavesReclaimsUnlessEverything(t *testing.T) {
	for stops, evicted := range map[v1beta1.PauseScope]int{v1beta1.PauseDeferrable: 1, v1beta1.PauseEverything: 0} {
		t.Run(string(stops), func(t *testing.T) {
			w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pauseOf(stops, 0, time.Hour))
			for range 13 {
				w.settle(10 * time.Second)
			}
			if len(w.evictions)+len(w.deletions) != evicted || w.node().Spec.Unschedulable != (evicted > 0) {
				t.Errorf("evicted %v, deleted %v, cordoned %v", w.evictions, w.deletions, w.node().Spec.Unschedulable)
			}
			w.stopped("web-1")
			w.remove(w.node())
			w.settle(time.Minute)
			if s := w.record().Status; s.CompletionTime == nil {
				t.Errorf("the instance is gone, and the record is in phase %s", s.Phase)
			}
		})
	}
}

// The time limit of a termination starts again after the pause.
func TestPauseDoesNotUseUpDrainTimeout(t *testing.T) {
	n := requested()
	n.Kind, n.Source = "InstanceStatus", "ec2"
	w := newWorld(t, recordOf(n), node("a", instance), pod("web-1"), budget(0), team(terminate))
	w.settle(time.Second)
	begun := record.Begun(&w.record().Status)
	if begun.IsZero() {
		t.Fatal("it has not begun")
	}
	if err := w.client.Create(t.Context(), pauseOf(v1beta1.PauseDeferrable, 2*time.Second, 10*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for range 11 {
		w.settle(time.Hour)
	}
	s := w.record().Status
	if s.Deadline == nil || s.Deadline.Time.Sub(w.now) <= 0 {
		t.Errorf("the deadline is %v at %s: the pause used up the time", s.Deadline, w.now)
	}
	if len(w.deletions) > 0 {
		t.Errorf("deleted %v at once", w.deletions)
	}
}
