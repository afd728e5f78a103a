package history

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
)

// TestRandomHistoriesAreScenarios parses many histories, and those that lack one element.
func TestRandomHistoriesAreScenarios(t *testing.T) {
	t.Parallel()
	kinds := map[EventKind]int{}
	for seed := range uint64(300) {
		h := Random(seed)
		if !bytes.Equal(h.Scenario(), Random(seed).Scenario()) {
			t.Fatalf("seed %d gives two histories", seed)
		}
		for i, one := range append(without(h), h) {
			if _, err := scenario.Parse("random", one.Scenario()); err != nil {
				t.Fatalf("seed %d, %d: %v\n%s", seed, i, err, one.Scenario())
			}
		}
		if first := slices.IndexFunc(h.Events, Event.interrupts); h.Events[first].Kind != Spot {
			t.Errorf("seed %d begins with %s, which may stop no pod", seed, h.Events[first].Kind)
		}
		for _, e := range h.Events {
			kinds[e.Kind]++
		}
	}
	for _, kind := range []EventKind{Spot, Rebalance, Scheduled, Cancel, Leave, Fault} {
		if kinds[kind] < 30 {
			t.Errorf("%d events %s in all histories", kinds[kind], kind)
		}
	}
}

func TestHistoryEndsSoonAfterItsNotice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		var end time.Duration
		for _, e := range Random(seed).Events {
			end = max(end, e.At+e.Notice)
		}
		if end > spotNotice+lastEvent {
			t.Errorf("seed %d lasts %s", seed, end)
		}
	}
}

// TestShrinkFindsTheCause shrinks to what a failure needs.
func TestShrinkFindsTheCause(t *testing.T) {
	t.Parallel()
	var h History
	for seed := uint64(0); len(h.Events) < 5; seed++ {
		h = Random(seed)
	}
	at := slices.IndexFunc(h.Events, func(e Event) bool { return e.Kind == Fault })
	cause := h.Events[at]
	played := 0
	got := Shrink(h, 1000, func(h History) bool {
		played++
		return slices.ContainsFunc(h.Events, func(e Event) bool { return e.Kind == Fault && e.Fault == cause.Fault })
	})
	if len(got.Events) != 2 || len(got.Workloads) != 0 || len(got.Policies) != 0 {
		t.Errorf("shrunk to\n%s", got.Scenario())
	}
	if played > 1000 {
		t.Errorf("played %d histories", played)
	}
	if got := Shrink(h, 0, func(History) bool { return true }); len(got.Events) != len(h.Events) {
		t.Error("shrunk without a try")
	}
}
