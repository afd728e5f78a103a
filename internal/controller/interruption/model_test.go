package interruption

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
)

// modelShards run in parallel.
const modelShards = 4

// TestModel runs the controller in random clusters with random events, while its process dies,
// its requests fail and its caches lag, and checks the invariants.
//
// LIFEBOAT_MODEL_SEED replays one run and logs its events. LIFEBOAT_MODEL_TIME, such as 4h,
// continues with new seeds for that time, and LIFEBOAT_MODEL_FAILURES is the number of failed
// runs after which a shard stops.
func TestModel(t *testing.T) {
	metrics, err := status.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if text := os.Getenv("LIFEBOAT_MODEL_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		r := modelRunOf(t, seed, metrics)
		t.Logf("run %d:\n%s", seed, strings.Join(r.log, "\n"))
		reportViolations(t, r)
		return
	}
	next, until := atomic.Uint64{}, time.Time{}
	if text := os.Getenv("LIFEBOAT_MODEL_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		until = time.Now().Add(d)
		next.Store(uint64(time.Now().UnixNano()) % 1_000_000_000)
	}
	first := next.Load()
	tally := make([]tally, modelShards)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the runs allocate much and keep nothing
	t.Run("runs", func(t *testing.T) {
		for shard := range modelShards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for failures := 0; failures < maxFailures(); {
					seed := next.Add(1)
					if until.IsZero() && seed > first+worlds() || !until.IsZero() && time.Now().After(until) {
						return
					}
					r := modelRunOf(t, seed, metrics)
					tally[shard].add(r)
					if len(r.wrong) > 0 {
						failures++
						reportViolations(t, r)
					}
				}
			})
		}
	})
	sum(t, tally)
}

// TestModelOfAGroup is TestModel with all nodes in an Auto Scaling group with a warm pool: it
// terminates instances, EC2 reclaims them, and the group's calls fail like all others, and are denied or
// throttled. No hook may be completed before its node is drained or the time is over, and none may time out
// without a fault. Each pod is asked to leave before its instance loses its power. An instance is detached from its group at most once, and terminated afterwards. No
// two instances may use the same replacement.
func TestModelOfAGroup(t *testing.T) {
	metrics, err := status.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	first, runs, until := uint64(0), worlds()/24, time.Time{}
	if text := os.Getenv("LIFEBOAT_MODEL_GROUP_SEED"); text != "" {
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
		runs = 1
	} else if text := os.Getenv("LIFEBOAT_MODEL_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		first, until = uint64(time.Now().UnixNano())%1_000_000_000, time.Now().Add(d)
	}
	var all modelGroup
	failures := 0
	for seed := first; (seed < first+runs || time.Now().Before(until)) && failures < maxFailures(); seed++ {
		r := playModel(t, seed, metrics, func(r *modelRun) {
			r.logs = runs == 1
			r.group = &modelGroup{modelRun: r, members: map[string]*modelMember{}}
		})
		if runs == 1 {
			t.Logf("run %d:\n%s", seed, strings.Join(r.log, "\n"))
		}
		for _, wrong := range r.wrong {
			t.Errorf("run %d: %s\nreplay it: LIFEBOAT_MODEL_GROUP_SEED=%d go test ./internal/controller/interruption -run TestModelOfAGroup -v", seed, wrong, seed)
			failures++
		}
		g := r.group
		all.refusedCalls, all.checkedPods = all.refusedCalls+g.refusedCalls, all.checkedPods+g.checkedPods
		all.beats, all.answers, all.lapses, all.detaches, all.launches, all.returns =
			all.beats+g.beats, all.answers+g.answers, all.lapses+g.lapses, all.detaches+g.detaches, all.launches+g.launches, all.returns+g.returns
	}
	t.Logf("%d heartbeats, %d answers, %d hooks that ran out, %d taken out, %d launched, %d returned, %d calls refused, %d pods without a request", all.beats, all.answers, all.lapses, all.detaches, all.launches, all.returns, all.refusedCalls, all.checkedPods)
	if n := int(runs); n > 1 && !t.Failed() && (all.beats < n/2 || all.answers < n/4 || all.detaches < n/8 || all.returns < n/20 || all.refusedCalls < n/4) {
		t.Error("too few events for a meaningful test")
	}
}

// worlds is the default number of runs.
func worlds() uint64 {
	if testing.Short() {
		return modelRuns / 10
	}
	return modelRuns
}

func modelRunOf(t *testing.T, seed uint64, metrics *status.Metrics) (r *modelRun) {
	t.Helper()
	return playModel(t, seed, metrics, func(r *modelRun) {
		r.logs = os.Getenv("LIFEBOAT_MODEL_SEED") != ""
		r.people = seed%3 == 0
	})
}

func playModel(t *testing.T, seed uint64, metrics *status.Metrics, with func(*modelRun)) (r *modelRun) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if p := recover(); p != nil {
				panic(fmt.Sprintf("run %d: %v\n%s", seed, p, debug.Stack()))
			}
		}()
		r = newModelRun(seed, metrics)
		with(r)
		r.simulate()
	})
	return r
}

func reportViolations(t *testing.T, r *modelRun) {
	t.Helper()
	for _, wrong := range r.wrong {
		t.Errorf("run %d: %s\nreplay it: LIFEBOAT_MODEL_SEED=%d go test ./internal/controller/interruption -run 'TestModel$' -v", r.seed, wrong, r.seed)
	}
}

// tally counts the events of all runs of a shard.
type tally struct {
	runs, crashes, overrides, writes, marks, putBacks, passes, finished, events, terminations, repeats, surges, reopened, obliged, excused, ended int
}

func (s *tally) add(r *modelRun) {
	b := r.bookkeeping
	s.runs++
	s.crashes += b.crashes
	s.overrides += b.overrides
	s.writes += b.writes
	s.marks += b.marks
	s.putBacks += b.putBacks
	s.passes += b.passes
	s.finished += b.finished
	s.events += r.events
	s.terminations += b.terminations
	s.repeats += b.repeats
	s.surges += b.surges
	s.reopened += b.reopened
	s.obliged += b.obliged
	s.excused += b.excused
	s.ended += b.ended
}

// sum fails the test if there were too few events for a meaningful test.
func sum(t *testing.T, shards []tally) {
	t.Helper()
	var all tally
	for _, s := range shards {
		all.runs += s.runs
		all.crashes += s.crashes
		all.overrides += s.overrides
		all.writes += s.writes
		all.marks += s.marks
		all.putBacks += s.putBacks
		all.passes += s.passes
		all.finished += s.finished
		all.events += s.events
		all.terminations += s.terminations
		all.repeats += s.repeats
		all.surges += s.surges
		all.reopened += s.reopened
		all.obliged += s.obliged
		all.excused += s.excused
		all.ended += s.ended
	}
	t.Logf("%+v", all)
	if t.Failed() {
		return
	}
	if all.crashes < all.runs/10 || all.overrides < all.runs/50 || all.marks < all.runs/2 || all.putBacks < all.runs/10 || all.finished < all.runs/2 ||
		all.surges < all.runs/100 || all.terminations < all.runs/50 || all.reopened < all.runs/100 ||
		all.obliged < 3*all.runs || all.ended < all.runs/50 {
		t.Errorf("too few events for a meaningful test: %+v", all)
	}
}

// maxFailures is the number of failed runs after which a shard stops.
func maxFailures() int {
	if n, err := strconv.Atoi(os.Getenv("LIFEBOAT_MODEL_FAILURES")); err == nil {
		return n
	}
	return 3
}
