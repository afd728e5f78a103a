package poll_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// reopen starts a completed record again, as the controller would.
func (w *world) reopen() {
	w.t.Helper()
	var record v1beta1.Interruption
	if err := w.Kube.Get(w.t.Context(), client.ObjectKey{Name: instance}, &record); err != nil {
		w.t.Fatal(err)
	}
	record.Status = v1beta1.InterruptionStatus{History: recordtest.CompletedBefore(record.Status.CompletionTime.Time)}
	if err := w.Kube.Status().Update(w.t.Context(), &record); err != nil {
		w.t.Fatal(err)
	}
}

// A completed notice is not open: its withdrawal would withdraw newer notices.
func TestHandledNoticeIsNotOpen(t *testing.T) {
	w := newWorld(t)
	standing := func(want ...string) {
		t.Helper()
		notices, err := poll.OpenNoticesOf(t.Context(), w.Kube, source, instance)
		if err != nil || len(notices) != len(want) {
			t.Errorf("standing: %v, %v; want %v", notices, err, want)
			return
		}
		for i := range want {
			if notices[i].ID != want[i] {
				t.Errorf("standing: %s, want %s", notices[i].ID, want[i])
			}
		}
	}
	w.seen(about("e", "a"))
	w.Finish(instance)
	w.Pass(time.Minute)
	w.seen(about("f", "b"))
	standing("b") // also before the controller has seen it
	w.reopen()
	standing("b")
	w.seen(about("e", "w", withdrawn))
	if got := w.Notices(instance); len(got) != 2 || got[0].Withdrawn || got[1].Withdrawn {
		t.Errorf("on record: %+v", got)
	}
	w.seen(about("f", "w2", withdrawn))
	if got := w.Notices(instance); len(got) != 2 || got[0].Withdrawn || !got[1].Withdrawn {
		t.Errorf("on record: %+v", got)
	}
	standing()
}

// The group's list withdraws what only events have reported, except drills.
func TestGroupStateWithdrawsOtherNotices(t *testing.T) {
	newNotice := func(source, id string, drill bool) notice.Notice {
		n := about("token", id)
		n.Kind, n.Source, n.Drill = notice.KindAutoScalingTermination, source, drill
		return n
	}
	for name, test := range map[string]struct {
		on      notice.Notice
		over    bool
		written int
	}{
		"the queue":            {newNotice(notice.SourceQueue, "token", false), false, 1},
		"the agent":            {newNotice(notice.SourceIMDS, "agent", false), false, 1},
		"a drill":              {newNotice(notice.SourceQueue, "drill", true), false, 0},
		"what was dealt with":  {newNotice(notice.SourceQueue, "token", false), true, 0},
		"what is another kind": {about("token", "plan"), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.PermitDrill("d-1", instance)
			test.on.DrillID = "d-1"
			if _, err := w.Recorder().Record(t.Context(), test.on); err != nil {
				t.Fatal(err)
			}
			if test.over {
				w.Finish(instance)
			}
			w.Spent()
			w.ledger = poll.NewDeduper(w.Recorder(), w.Kube, poll.Options{Source: notice.SourceAutoScaling, Clock: w.Clock})
			serves := about("workers/"+instance, "serves", withdrawn)
			serves.Kind = notice.KindAutoScalingTermination
			w.seen(serves)
			if _, writes := w.Spent(); writes != test.written || w.Notices(instance)[0].Withdrawn != (test.written > 0) || w.ledger.Pending() != 0 {
				t.Errorf("%d writes, on record %+v", writes, w.Notices(instance))
			}
		})
	}
}
