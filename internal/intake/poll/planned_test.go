package poll_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Deleting a Node object completes the record although EC2 still plans to stop
// the instance. When the kubelet registers again, the change must be recorded
// again.
func TestPlannedChangeIsRecordedForNewNode(t *testing.T) {
	const day = 24 * time.Hour
	soft := func(in time.Duration) func(*notice.Notice) { return deadline(in, v1beta1.DeadlineSoft) }
	for name, tc := range map[string]struct {
		plan notice.Notice
		unfinished,
		keepsNode bool
		want int // writes
	}{
		"a planned change":                {about("e", "a", soft(5*day)), false, false, 1},
		"the record is not completed":     {about("e", "a", soft(5*day)), true, false, 0},
		"the node was there all the time": {about("e", "a", soft(5*day)), false, true, 0},
		"its date has passed":             {about("e", "a", soft(time.Minute)), false, false, 0},
		"a hard deadline":                 {about("e", "a", deadline(5*day, v1beta1.DeadlineHard)), false, false, 0},
		"no deadline":                     {about("e", "a"), false, false, 0},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", name, restarts), func(t *testing.T) {
				w := newWorld(t)
				start := func() {
					w.ledger = poll.NewDeduper(w.Recorder(), w.Kube, poll.Options{Source: source, Nodes: w, Clock: w.Clock})
				}
				start()
				w.seen(tc.plan)
				w.Pass(time.Hour)
				if !tc.keepsNode {
					w.RemoveNode(instance)
				}
				if !tc.unfinished {
					w.Finish(instance)
				}
				w.Spent()
				w.seen(tc.plan)
				if _, writes := w.Spent(); writes != 0 {
					t.Errorf("%d writes without a node", writes)
				}
				w.Pass(time.Minute)
				if !tc.keepsNode {
					w.RegisterAgain(instance)
				}
				if restarts {
					start()
				}
				w.Spent()
				for range 3 {
					w.seen(tc.plan)
					w.Pass(time.Minute)
				}
				if _, writes := w.Spent(); writes != tc.want {
					t.Errorf("%d writes after the node has registered, want %d", writes, tc.want)
				}
				standing, err := poll.OpenNoticesOf(t.Context(), w.Kube, source, instance)
				if wantStanding := tc.want > 0 || tc.unfinished; err != nil || (len(standing) == 1) != wantStanding {
					t.Errorf("standing: %v, %v; want one: %t", standing, err, wantStanding)
				}
				if w.ledger.Pending() != 0 {
					t.Errorf("%d pending", w.ledger.Pending())
				}
			})
		}
	}
}

// A change that was recorded again counts as known: a restart writes nothing,
// completing the record with the node in place causes no loop, and the cloud
// can withdraw it.
func TestPlannedChangeIsRecordedAgainOnce(t *testing.T) {
	w := newWorld(t)
	plan := about("e", "a", deadline(5*24*time.Hour, v1beta1.DeadlineSoft))
	start := func() {
		w.ledger = poll.NewDeduper(w.Recorder(), w.Kube, poll.Options{Source: source, Nodes: w, Clock: w.Clock})
	}
	register := func() string {
		w.RemoveNode(instance)
		w.Finish(instance)
		w.Pass(time.Minute)
		w.RegisterAgain(instance)
		w.seen(plan)
		return w.IDs(instance)[0]
	}
	start()
	w.seen(plan)
	first := register()
	w.Spent()
	start()
	w.seen(plan)
	w.Pass(time.Minute)
	w.Finish(instance)
	w.seen(plan)
	start()
	w.seen(plan)
	if _, writes := w.Spent(); writes != 0 || w.IDs(instance)[0] != first {
		t.Errorf("%d writes, on record %v, want %s", writes, w.IDs(instance), first)
	}
	if second := register(); second == first || second == "a" || first == "a" {
		t.Errorf("the ids of two registrations are %s and %s", first, second)
	}
	w.seen(about("e", "over", withdrawn, deadline(5*24*time.Hour, v1beta1.DeadlineSoft)))
	if diff := cmp.Diff([]string{"over"}, w.IDs(instance)); diff != "" || !w.Notices(instance)[0].Withdrawn {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

// A person cancels an interruption by deleting its record. The polls of this
// process respect that while the node stays, but not for a Node object that
// registers later.
func TestPlannedChangeWithDeletedRecord(t *testing.T) {
	w := newWorld(t)
	plan := about("e", "a", deadline(5*24*time.Hour, v1beta1.DeadlineSoft))
	w.ledger = poll.NewDeduper(w.Recorder(), w.Kube, poll.Options{Source: source, Nodes: w, Clock: w.Clock})
	w.seen(plan)
	remove := func() {
		t.Helper()
		if err := w.Kube.Delete(t.Context(), &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: instance}}); err != nil {
			t.Fatal(err)
		}
		w.Spent()
		for range 3 {
			w.Pass(time.Minute)
			w.seen(plan)
		}
	}
	remove()
	if _, writes := w.Spent(); writes != 0 {
		t.Errorf("%d writes after the record was deleted, with the node in place", writes)
	}
	w.Pass(time.Minute)
	w.RegisterAgain(instance)
	w.seen(plan)
	w.seen(plan)
	if _, writes := w.Spent(); writes != 1 || len(w.IDs(instance)) != 1 {
		t.Errorf("%d writes after the node has registered again, on record %v", writes, w.IDs(instance))
	}
}
