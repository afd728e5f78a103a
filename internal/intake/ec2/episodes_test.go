package ec2

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
)

// EC2 does not always report the start of a failing check. Each episode must
// still be a separate notice, and the same episode the same notice after a
// restart.
func TestEachFailedCheckEpisodeIsNotice(t *testing.T) {
	w := polltest.New(t)
	w.Set(now)
	w.AddNode(instance)
	var s *Source
	start := func() { s = New(API{}, w, w.Recorder(), Options{Reader: w.Kube, Clock: w.Clock}) }
	// poll runs one round in which the check fails or passes.
	poll := func(fails bool) {
		t.Helper()
		failing := map[failure]bool{}
		if fails {
			f := failure{"system-status", instance}
			failing[f] = true
			at, err := s.episodeStart(t.Context(), f, w.Clock())
			if err != nil {
				t.Fatal(err)
			}
			s.deduper.Observe(impaired(instance, check{name: f.check, status: statusImpaired, seen: at}))
		}
		s.prune("system-status", failing)
		if err := s.deduper.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
	}
	expect := func(what string, writes int, ids ...string) {
		t.Helper()
		if _, got := w.Spent(); got != writes {
			t.Errorf("%s: %d writes, want %d", what, got, writes)
		}
		if diff := cmp.Diff(ids, w.IDs(instance)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	const first, second = "ec2/InstanceStatus/system-status/impaired/2026-05-11T08:14:05Z", "ec2/InstanceStatus/system-status/impaired/2026-05-11T08:18:05Z"
	start()
	poll(true)
	poll(true)
	expect("the first episode", 1, first)
	start()
	poll(true)
	expect("after a restart", 0, first)
	w.Finish(instance)
	poll(false)
	poll(true) // 08:18:05
	expect("the second episode, after the record was completed", 1, second)
	w.Finish(instance)
	start()
	poll(true)
	poll(true)
	expect("after another restart", 0, second)
}
