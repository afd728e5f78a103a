package interruption

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func TestEvictionMarksAreReverted(t *testing.T) {
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
			now := w.record().Status
			if left := record.Pending(record.Drain(&now)); len(left) != 1 || left[0].State != v1beta1.PodRefused || left[0].EvictionTime != nil || left[0].GraceSeconds != nil {
				t.Errorf("pods %+v", left)
			}
			if got := reasons(now); slices.Contains(got, v1beta1.ReasonEvicted) {
				t.Errorf("timeline %v has an eviction", got)
			}
			if record.Drain(&now).PodCounts.Leaving != 0 || record.Drain(&now).PodCounts.Waiting != 1 {
				t.Errorf("pods %+v", record.Drain(&now).PodCounts)
			}
			w.refuse = nil
			w.settle(time.Second)
			if got := reasons(w.record().Status); !slices.Contains(got, v1beta1.ReasonEvicted) {
				t.Errorf("timeline %v lacks the eviction", got)
			}
			if got := record.Drain(&w.record().Status).PodCounts; got.Leaving != 1 {
				t.Errorf("pods %+v", got)
			}
		})
	}
}

// The evictions that a drain starts with are written once, before the requests. What the watch
// shows of them afterwards causes no write.
func TestDrainStartNeedsOneWrite(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	w.lagging = true
	w.settle(time.Second)
	began := w.record()
	if record.Drain(&began.Status).PodCounts.Leaving != 2 {
		t.Fatalf("pods %+v", record.Drain(&began.Status).PodCounts)
	}
	w.lagging = false // the watch shows the eviction a little later than the record
	for name := range w.asked {
		w.asked[name] = w.asked[name].Add(2 * time.Second)
	}
	w.settle(3 * time.Second)
	if now := w.record(); now.ResourceVersion != began.ResourceVersion {
		t.Errorf("written again:\n%s", cmp.Diff(began.Status, now.Status))
	}
	w.stopped("web-1")
	w.settle(time.Second)
	left := record.Pending(record.Drain(&w.record().Status))
	if len(left) != 1 || !strings.Contains(left[0].Message, "leaving: asked to stop") {
		t.Errorf("not put right with the next write: %+v", left)
	}
}
