package interruption

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func historyOf(w *world) (all []string) {
	for _, e := range w.record().Status.History {
		all = append(all, fmt.Sprintf("%s %s %d/%d", e.Kind, e.Outcome, e.PodsMoved, e.PodsTotal))
	}
	return all
}

func wantHistory(t *testing.T, w *world, want ...string) {
	t.Helper()
	if got := historyOf(w); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("history %q, want %q", got, want)
	}
}

// A reclaim takes the drain of a request over. The pods are listed once.
func TestHistoryShowsThatADrainWasTakenOver(t *testing.T) {
	w := newWorld(t, recordOf(request(time.Time{})), node("a", instance), pod("web-1"), pod("web-2"), budget(0))
	w.settle(time.Second)
	w.reclaim()
	w.settle(time.Second)
	wantHistory(t, w, "Requested TakenOver 0/2")
	d := w.record().Status.Drain
	if d.Kind != notice.KindSpotInterruption || len(d.Pods) != 2 {
		t.Errorf("the drain serves %s, and lists %d pods", d.Kind, len(d.Pods))
	}
	for range 12 {
		w.settle(10 * time.Second)
	}
	w.stopped("web-1")
	w.stopped("web-2")
	w.remove(w.node())
	for range 5 {
		w.settle(20 * time.Minute)
	}
	wantHistory(t, w, "Requested TakenOver 0/2", "SpotInterruption Completed 2/2")
}

// The node outlives two reclaims. The record keeps what ended before, and its new drain begins empty.
func TestHistoryOutlivesTheNextInterruption(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	w.stopped("web-1")
	w.settle(20 * time.Minute)
	wantHistory(t, w, "SpotInterruption Cancelled 1/1")
	again := spot()
	again.ID, again.ReceivedTime, again.Time = "spot-2", metav1.NewMicroTime(w.now.Add(time.Second)), metav1.NewTime(w.now)
	again.Deadline = notice.At(w.now.Add(2*time.Minute), v1beta1.DeadlineHard)
	w.addNotices(again)
	w.settle(2 * time.Second)
	wantHistory(t, w, "SpotInterruption Cancelled 1/1")
	if d := w.record().Status.Drain; d.PodCounts.Moved != 0 || len(d.Pods) != 0 {
		t.Errorf("the new drain begins with %+v", d)
	}
	w.settle(20 * time.Minute)
	wantHistory(t, w, "SpotInterruption Cancelled 1/1", "SpotInterruption Cancelled 0/0")
}
