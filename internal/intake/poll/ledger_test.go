package poll_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestKnownNoticeNeedsNoWrite(t *testing.T) {
	w := newWorld(t)
	w.seen(about("event-1", "a"))
	if reads, writes := w.Spent(); reads == 0 || writes != 1 {
		t.Errorf("%d reads and %d writes for the first sight, want some and one", reads, writes)
	}
	for range 100 {
		w.Pass(2 * time.Second)
		w.seen(about("event-1", "a"))
	}
	if reads, writes := w.Spent(); reads != 0 || writes != 0 {
		t.Errorf("%d reads and %d writes for what is seen again", reads, writes)
	}
	w.restart()
	w.seen(about("event-1", "a"))
	if _, writes := w.Spent(); writes != 0 {
		t.Errorf("%d writes after a restart", writes)
	}
	got := w.Notices(instance)
	if len(got) != 1 || !got[0].Time.Time.Equal(noon) || !got[0].ReceivedTime.Time.Equal(noon) {
		t.Errorf("want the time of the first sight on record, got %v", got)
	}
}

func TestChangedNoticeIsRecorded(t *testing.T) {
	tests := []struct {
		name  string
		looks []notice.Notice
		want  []string
	}{
		{"a change takes the place of what was", []notice.Notice{about("e", "a"), about("e", "b")}, []string{"b"}},
		{"it changes back", []notice.Notice{about("e", "a"), about("e", "b"), about("e", "a")}, []string{"a"}},
		{"two subjects", []notice.Notice{about("e", "a"), about("f", "b")}, []string{"a", "b"}},
		{"it is taken back", []notice.Notice{about("e", "a"), about("e", "w", withdrawn)}, []string{"w"}},
		{"there is nothing to take back", []notice.Notice{about("e", "w", withdrawn)}, nil},
		{"nothing of that subject", []notice.Notice{about("f", "a"), about("e", "w", withdrawn)}, []string{"a"}},
		{"it is taken back twice", []notice.Notice{about("e", "a"), about("e", "w", withdrawn), about("e", "w2", withdrawn)}, []string{"w"}},
		{"it is reported again after it was withdrawn", []notice.Notice{about("e", "a"), about("e", "w", withdrawn), about("e", "a")}, []string{"a"}},
		{"the cloud's time is older than what is on record", []notice.Notice{about("e", "a"), about("e", "b", issued(noon.Add(-time.Hour)))}, []string{"b"}},
	}
	for _, test := range tests {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", test.name, restarts), func(t *testing.T) {
				w := newWorld(t)
				for _, n := range test.looks {
					w.seen(n)
					w.Pass(-time.Second) // also where a clock goes wrong
					if restarts {
						w.restart()
					}
				}
				if diff := cmp.Diff(test.want, w.IDs(instance)); diff != "" {
					t.Errorf("on record (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestCompletedNoticeIsNotWithdrawn(t *testing.T) {
	w := newWorld(t)
	w.seen(about("e", "a"))
	w.Finish(instance)
	w.seen(about("e", "w", withdrawn))
	if diff := cmp.Diff([]string{"a"}, w.IDs(instance)); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

func TestNoticeDuringAPIServerOutageIsKept(t *testing.T) {
	w := newWorld(t)
	w.Away(true)
	w.ledger.Observe(about("e", "a"))
	for range 5 {
		if err := w.ledger.Flush(t.Context()); !errors.Is(err, polltest.ErrAway) {
			t.Fatalf("got %v, want the API server's error", err)
		}
		w.Pass(time.Minute)
	}
	w.Away(false)
	if err := w.ledger.Flush(t.Context()); err != nil { // the cloud does not speak of it any more
		t.Fatal(err)
	}
	got := w.Notices(instance)
	if len(got) != 1 || !got[0].Time.Time.Equal(noon) {
		t.Errorf("want it on record with the time of its first sight, got %v", got)
	}
	if w.ledger.Pending() != 0 {
		t.Errorf("%d are left", w.ledger.Pending())
	}
}

func TestChangeDuringAPIServerOutage(t *testing.T) {
	w := newWorld(t)
	w.seen(about("e", "a"))
	w.Away(true)
	w.ledger.Observe(about("e", "b"))
	w.ledger.Observe(about("e", "a"))
	w.Away(false)
	w.Spent()
	w.seen()
	if reads, writes := w.Spent(); reads+writes != 0 || w.ledger.Pending() != 0 {
		t.Errorf("%d calls and %d left for what is again as it was", reads+writes, w.ledger.Pending())
	}
	w.Away(true)
	w.ledger.Observe(about("f", "c"))
	w.ledger.Observe(about("f", "w", withdrawn))
	w.Away(false)
	w.seen()
	if diff := cmp.Diff([]string{"a"}, w.IDs(instance)); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

// memory is a Recorder that does not write.
type memory struct {
	ids     []string
	outcome intake.Outcome
	fails   map[string]bool
}

func (m *memory) Record(_ context.Context, n notice.Notice) (intake.Outcome, error) {
	m.ids = append(m.ids, n.ID)
	if m.fails[n.ID] {
		return "", polltest.ErrAway
	}
	return m.outcome, nil
}

func (w *world) with(m *memory) *poll.Deduper {
	return poll.NewDeduper(m, w.Kube, poll.Options{Source: source, Clock: w.Clock})
}

func deadline(in time.Duration, typ v1beta1.DeadlineType) func(*notice.Notice) {
	return func(n *notice.Notice) { n.Deadline = notice.At(noon.Add(in), typ) }
}

func TestMostUrgentNoticeFirst(t *testing.T) {
	w, m := newWorld(t), &memory{outcome: intake.Recorded}
	l := w.with(m)
	for _, n := range []notice.Notice{
		about("1", "none"), about("2", "soft", deadline(time.Minute, v1beta1.DeadlineSoft)),
		about("3", "later", deadline(time.Hour, v1beta1.DeadlineHard)), about("4", "soon", deadline(2*time.Minute, v1beta1.DeadlineHard)),
	} {
		l.Observe(n)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"soon", "later", "soft", "none"}, m.ids); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestFailedRecordDelaysNoOther(t *testing.T) {
	w, m := newWorld(t), &memory{outcome: intake.Recorded, fails: map[string]bool{"soon": true}}
	l := w.with(m)
	l.Observe(about("1", "soon", deadline(0, v1beta1.DeadlineHard)))
	l.Observe(about("2", "none"))
	for range 2 {
		if err := l.Flush(t.Context()); !errors.Is(err, polltest.ErrAway) {
			t.Errorf("got %v", err)
		}
	}
	if diff := cmp.Diff([]string{"soon", "none", "soon"}, m.ids); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
}

func TestRetriesStopWhenAllFail(t *testing.T) {
	w, m := newWorld(t), &memory{fails: map[string]bool{}}
	l := w.with(m)
	for i := range 50 {
		id := fmt.Sprint(i)
		m.fails[id] = true
		l.Observe(about(id, id))
	}
	if err := l.Flush(t.Context()); err == nil || len(m.ids) != 3 {
		t.Errorf("%d tried with error %v, want three", len(m.ids), err)
	}
	if l.Pending() != 50 {
		t.Errorf("%d left, want all", l.Pending())
	}
}

func TestNodeRegistersLater(t *testing.T) {
	w := newWorld(t)
	other := "i-0bbbbbbbbbbbbbbbb"
	w.seen(about("e", "a", of(other)))
	w.Pass(9 * time.Minute)
	w.AddNode(other)
	w.seen()
	if _, writes := w.Spent(); writes != 1 {
		t.Errorf("%d writes for a node that registered", writes)
	}
}

func TestNodeNeverRegisters(t *testing.T) {
	w, m := newWorld(t), &memory{outcome: intake.NotYetKnown}
	l := w.with(m)
	l.Observe(about("e", "a"))
	for range 30 {
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
	}
	if len(m.ids) != 12 || l.Pending() != 0 {
		t.Errorf("tried %d times with %d left, want to give up after ten minutes", len(m.ids), l.Pending())
	}
}

func TestAbsentNoticeIsForgotten(t *testing.T) {
	w := newWorld(t)
	n := about("e", "a")
	w.seen(n)
	if !w.ledger.ObservedSince(&n, noon) {
		t.Error("it was not seen")
	}
	w.Pass(time.Minute)
	if w.ledger.ObservedSince(&n, w.Clock()) {
		t.Error("it was seen a minute ago only")
	}
	w.Pass(2 * time.Hour)
	w.seen()
	w.Spent()
	w.seen(n)
	if reads, writes := w.Spent(); reads != 1 || writes != 0 {
		t.Errorf("%d reads and %d writes after it was forgotten, want one read", reads, writes)
	}
}

func TestStanding(t *testing.T) {
	w := newWorld(t)
	w.AddNode("i-0bbbbbbbbbbbbbbbb")
	w.seen(about("e", "a"), about("f", "b"), about("f", "w", withdrawn), about("", "subjectless"), about("g", "c", of("i-0bbbbbbbbbbbbbbbb")))
	w.seen(about("e2", "d"), about("e2", "w2", withdrawn))
	got := func(notices []notice.Notice, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, n := range notices {
			all = append(all, n.InstanceID+" "+n.ID)
		}
		return all
	}
	want := []string{instance + " a", "i-0bbbbbbbbbbbbbbbb c"}
	if diff := cmp.Diff(want, got(poll.OpenNotices(t.Context(), w.Kube, source))); diff != "" {
		t.Errorf("standing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], got(poll.OpenNoticesOf(t.Context(), w.Kube, source, instance))); diff != "" {
		t.Errorf("standing of one (-want +got):\n%s", diff)
	}
	if got := got(poll.OpenNotices(t.Context(), w.Kube, "another")); got != nil {
		t.Errorf("standing of another source: %v", got)
	}
	w.Finish(instance)
	if got := got(poll.OpenNoticesOf(t.Context(), w.Kube, source, instance)); got != nil {
		t.Errorf("standing where nothing is left to do: %v", got)
	}
}

func TestTakeBack(t *testing.T) {
	w := newWorld(t)
	w.seen(about("e", "a", deadline(time.Hour, v1beta1.DeadlineSoft)))
	standing, err := poll.OpenNoticesOf(t.Context(), w.Kube, source, instance)
	if err != nil || len(standing) != 1 {
		t.Fatal(standing, err)
	}
	w.Pass(time.Minute)
	w.seen(poll.Withdraw(standing[0], "it is over"))
	got := w.Notices(instance)
	if len(got) != 1 || !got[0].Withdrawn || got[0].Description != "it is over" || !got[0].Time.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("on record: %+v", got)
	}
	if again := poll.Withdraw(standing[0], "it is over"); again.ID != got[0].ID {
		t.Errorf("the id of the same news is %s and %s", again.ID, got[0].ID)
	}
}

// slow is a Recorder that blocks until it is released.
type slow struct {
	memory
	began, goOn chan struct{}
}

func (s *slow) Record(ctx context.Context, n notice.Notice) (intake.Outcome, error) {
	outcome, err := s.memory.Record(ctx, n)
	if n.ID == "slow" {
		close(s.began)
		<-s.goOn
	}
	return outcome, err
}

func TestConcurrentPollsRecordOnce(t *testing.T) {
	w := newWorld(t)
	s := &slow{memory: memory{outcome: intake.Recorded}, began: make(chan struct{}), goOn: make(chan struct{})}
	l := poll.NewDeduper(s, w.Kube, poll.Options{Source: source, Clock: w.Clock})
	l.Observe(about("e", "slow"))
	first := make(chan error, 1)
	go func() { first <- l.Flush(t.Context()) }()
	<-s.began
	l.Observe(about("f", "other"))
	if err := l.Flush(t.Context()); err != nil || l.Pending() != 1 {
		t.Errorf("%v, %d left while one is in hand", err, l.Pending())
	}
	close(s.goOn)
	if err := <-first; err != nil || l.Pending() != 0 {
		t.Errorf("%v, %d left", err, l.Pending())
	}
	if diff := cmp.Diff([]string{"slow", "other"}, s.ids); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}
