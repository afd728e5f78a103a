package interruption

import (
	"slices"
	"testing"
	"time"
)

// Where much is to be done, the watch of a node's pods begins late, and the pods do not
// show for a while that they were asked. They are not asked again, and nobody looks
// every few seconds whether they do.
func TestWhoIsHeardOfLateIsAskedOnce(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	w.lagging = true
	w.settle(time.Second)
	passes := 0
	for w.now.Add(w.wake).Before(start.Add(100 * time.Second)) {
		w.settle(w.wake)
		passes++
	}
	slices.Sort(w.evictions)
	if want := []string{"web-1", "web-2"}; !slices.Equal(w.evictions, want) || len(w.deletions) > 0 {
		t.Errorf("asked %v, then deleted %v, want %v once", w.evictions, w.deletions, want)
	}
	if passes > 5 {
		t.Errorf("%d passes in 100 seconds", passes)
	}
}

// A pod whose turn comes once others have left is waited for with the watch of them,
// and none else is: their changes are worth hearing of only later.
func TestWhoAwaitsOthersHearsOfThem(t *testing.T) {
	last := pod("dns-1")
	last.Spec.PriorityClassName = "system-node-critical"
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	w.settle(time.Second)
	if w.askedFor > 0 {
		t.Errorf("changes were asked for %d times, though no pod waits for them", w.askedFor)
	}
	w = newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), last)
	w.settle(time.Second)
	if w.askedFor == 0 || !slices.Equal(w.evictions, []string{"web-1"}) {
		t.Errorf("changes were asked for %d times after the eviction of %v", w.askedFor, w.evictions)
	}
}
