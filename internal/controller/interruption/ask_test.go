package interruption

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

func TestWhatWasForetoldIsTakenBack(t *testing.T) {
	for name, refuse := range map[string]error{
		"refused by a budget":   refusal(),
		"busy":                  apierrors.NewTooManyRequests("busy", 1),
		"not allowed":           apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", errors.New("no rule")),
		"the answer is unknown": errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
			w.refuse = refuse
			for range 3 {
				_ = w.pass(time.Second) // some fail, and the queue repeats them
			}
			status := w.record().Status
			if left := status.PodsLeft; len(left) != 1 || left[0].Verdict != verdictRefused || left[0].AskedTime != nil || left[0].GraceSeconds != nil {
				t.Errorf("pods %+v", left)
			}
			if got := reasons(status); slices.Contains(got, v1alpha1.ReasonEvicted) {
				t.Errorf("timeline %v tells of an eviction", got)
			}
			if status.Pods.Leaving != 0 || status.Pods.Waiting != 1 {
				t.Errorf("pods %+v", status.Pods)
			}
			w.refuse = nil
			w.settle(time.Second)
			if got := reasons(w.record().Status); !slices.Contains(got, v1alpha1.ReasonEvicted) {
				t.Errorf("timeline %v does not tell of the eviction", got)
			}
			if got := w.record().Status.Pods; got.Leaving != 1 {
				t.Errorf("pods %+v", got)
			}
		})
	}
}

// TestOneWriteForADrainThatBegins: what is about to be asked and what was asked are
// written once, and what the watch then tells of it is not written at all.
func TestOneWriteForADrainThatBegins(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	w.lagging = true
	w.settle(time.Second)
	began := w.record()
	if began.Status.Pods.Leaving != 2 {
		t.Fatalf("pods %+v", began.Status.Pods)
	}
	w.lagging = false // the watch shows when they were asked, and that is a little later
	for name := range w.asked {
		w.asked[name] = w.asked[name].Add(2 * time.Second)
	}
	w.settle(3 * time.Second)
	if now := w.record(); now.ResourceVersion != began.ResourceVersion {
		t.Errorf("written anew:\n%s", cmp.Diff(began.Status, now.Status))
	}
	w.stopped("web-1")
	w.settle(time.Second)
	left := w.record().Status.PodsLeft
	if len(left) != 1 || !strings.Contains(left[0].Reason, "leaving: asked to stop") {
		t.Errorf("not put right with the next write: %+v", left)
	}
}

func TestTaken(t *testing.T) {
	var known taken
	const evicted = types.UID("a")
	if until := known.until(evicted); until.After(start) {
		t.Errorf("known until %s before it was noted", until)
	}
	known.note(evicted, start)
	if until := known.until(evicted); !until.Equal(start.Add(takenFor)) {
		t.Errorf("known until %s", until)
	}
	// What is old goes, whatever the number.
	for i := range 10 {
		known.note(types.UID(strconv.Itoa(i)), start.Add(time.Duration(i)*(takenFor+1)))
	}
	if n := len(known.young) + len(known.old); n > 2 {
		t.Errorf("%d requests are remembered", n)
	}
}

func TestATakenEvictionStandsInTheWayOfNoDeletion(t *testing.T) {
	f := &facts{now: start, taken: func(types.UID) time.Time { return start.Add(time.Second) }}
	for step, want := range map[drain.Step]bool{drain.StepEvict: true, drain.StepDelete: false, drain.StepSurge: false} {
		if got := f.askedLately(drain.Verdict{Pod: pod("web-1"), Step: step}); got != want {
			t.Errorf("%s: asked lately %v, want %v", step, got, want)
		}
	}
}
