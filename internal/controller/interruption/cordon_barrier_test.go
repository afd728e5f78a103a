package interruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// arriving returns an Interruption as it arrives.
func arriving(name string) *v1beta1.Interruption {
	in := recordOf(spot())
	in.Name, in.Spec.InstanceID = name, name
	return in
}

// begun returns an Interruption whose decision is to drain, in a phase.
func begun(name string, phase v1beta1.Phase) *v1beta1.Interruption {
	in := arriving(name)
	in.Status.Decision, in.Status.LastNoticeID = &v1beta1.Decision{Action: v1beta1.ActionDrain}, "spot-1"
	in.Status.Phase = phase
	return in
}

// awaiting returns a generation of an Interruption that waits for approval.
func awaiting(name string, generation int64) *v1beta1.Interruption {
	in := begun(name, v1beta1.PhaseAwaitingApproval)
	in.Generation = generation
	return in
}

func TestBarrierWaitsForOtherNodes(t *testing.T) {
	none := func(string) bool { return false }
	all := func(string) bool { return true }
	for name, tc := range map[string]struct {
		build    func(b *cordonBarrier)
		after    time.Duration // since start, when the first asks
		received time.Duration // since start
		cordoned func(string) bool
		waits    bool
	}{
		"it is alone": {build: func(b *cordonBarrier) { b.observe(nil, arriving("a"), start) }, cordoned: none},
		"another is not cordoned": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("a"), start)
			b.observe(nil, arriving("b"), start)
		}, after: time.Second, cordoned: none, waits: true},
		"the other was cordoned by this process": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.setCordoned("b", start)
		}, after: time.Second, cordoned: none},
		"the cache shows that the other is cordoned": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
		}, after: time.Second, cordoned: all},
		"another has just been cordoned": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start.Add(-time.Second))
			b.setCordoned("b", start)
		}, after: barrierSettle - time.Millisecond, cordoned: none, waits: true},
		"another without a node has just arrived": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
		}, after: barrierSettle - time.Millisecond, cordoned: all},
		"others without a node arrive after one was cordoned": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.setCordoned("b", start)
			for i := range 100 {
				b.observe(nil, arriving(fmt.Sprint("gone-", i)), start.Add(barrierSettle))
			}
		}, after: barrierSettle, cordoned: all},
		"a second notice of its own has just arrived": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("a"), start)
			joined := arriving("a")
			joined.Generation = 2
			b.observe(arriving("a"), joined, start)
		}, cordoned: none},
		"a second notice of another, which is cordoned, has just arrived": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.setCordoned("b", start)
			joined := arriving("b")
			joined.Generation = 2
			b.observe(arriving("b"), joined, start.Add(time.Minute))
		}, after: time.Minute, received: time.Minute, cordoned: none},
		"another, which is only marked, gets a second notice": {build: func(b *cordonBarrier) {
			marked := arriving("b")
			marked.Status.Decision, marked.Status.LastNoticeID = &v1beta1.Decision{Action: v1beta1.ActionNotify}, "spot-1"
			b.observe(nil, marked, start)
			joined := marked.DeepCopy()
			joined.Generation, joined.Spec.Notices = 2, append(joined.Spec.Notices, rebalance())
			b.observe(marked, joined, start)
		}, after: time.Second, cordoned: none, waits: true},
		"another is only marked": {build: func(b *cordonBarrier) {
			marked := arriving("b")
			marked.Status.Decision, marked.Status.LastNoticeID = &v1beta1.Decision{Action: v1beta1.ActionNotify}, "spot-1"
			b.observe(nil, marked, start)
		}, after: time.Second, cordoned: none},
		"the other cannot be cordoned": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
		}, after: barrierTimeout, received: barrierTimeout, cordoned: none},
		"its own time is over, whatever restarts the process": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start.Add(barrierTimeout))
		}, after: barrierTimeout, cordoned: none},
		"a clock that is ahead does not extend its time": {build: func(b *cordonBarrier) {
			_, _ = b.wait("a", start.Add(time.Hour), start, none)
			b.observe(nil, arriving("b"), start.Add(barrierTimeout))
		}, after: barrierTimeout, received: time.Hour, cordoned: none},
		"the window of another opens in the same second": {build: func(b *cordonBarrier) {
			b.expect("b", start.Add(time.Second))
		}, after: time.Second - barrierSettle, cordoned: none, waits: true},
		"the window of another opens later": {build: func(b *cordonBarrier) {
			b.expect("b", start.Add(time.Minute))
		}, after: time.Second, cordoned: none},
		"the window of another opened, and it could not be cordoned": {build: func(b *cordonBarrier) {
			b.expect("b", start)
		}, after: barrierTimeout, received: barrierTimeout, cordoned: none},
		"another has no window any more": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.expect("b", start)
			b.expect("b", time.Time{})
		}, after: time.Second, cordoned: none},
		"the drain of another begins": {build: func(b *cordonBarrier) {
			b.begin("b", start)
		}, after: time.Second, cordoned: none, waits: true},
		"the drain of another begins when its window opens": {build: func(b *cordonBarrier) {
			b.expect("b", start)
			b.begin("b", start)
			b.setCordoned("b", start)
		}, after: time.Second, cordoned: none},
		"the drain of another begins, long after it arrived": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.begin("b", start.Add(10*time.Second))
		}, after: barrierTimeout, received: barrierTimeout, cordoned: none},
		"after a restart, the drain of another has begun": {build: func(b *cordonBarrier) {
			b.observe(nil, begun("b", v1beta1.PhaseDraining), start)
		}, after: time.Second, cordoned: none, waits: true},
		"after a restart, another is drained and cordoned": {build: func(b *cordonBarrier) {
			b.observe(nil, begun("b", v1beta1.PhaseDrained), start)
		}, after: time.Second, cordoned: all},
		"after a restart, another waits for its slot": {build: func(b *cordonBarrier) {
			b.observe(nil, begun("b", v1beta1.PhaseQueued), start)
		}, after: time.Second, cordoned: none},
		"the approval that another waits for may have come": {build: func(b *cordonBarrier) {
			b.observe(awaiting("b", 1), awaiting("b", 2), start)
		}, after: time.Second, cordoned: none, waits: true},
		"the approval of another has not come": {build: func(b *cordonBarrier) {
			b.observe(awaiting("b", 1), awaiting("b", 2), start)
			b.expect("b", time.Time{})
		}, after: time.Second, cordoned: none},
		"the status of one that awaits approval has changed": {build: func(b *cordonBarrier) {
			b.observe(awaiting("b", 1), awaiting("b", 1), start)
		}, after: time.Second, cordoned: none},
		"the other was deleted": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.forget("b")
		}, after: time.Second, cordoned: none},
		"the other is finished": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			done := arriving("b")
			recordtest.Complete(done, start, "spot-1")
			b.observe(arriving("b"), done, start)
		}, after: time.Second, cordoned: none},
	} {
		t.Run(name, func(t *testing.T) {
			var b cordonBarrier
			tc.build(&b)
			wait, _ := b.wait("a", start.Add(tc.received), start.Add(tc.after), tc.cordoned)
			if (wait > 0) != tc.waits || wait > maxBarrierPoll {
				t.Errorf("waits %s, want %t", wait, tc.waits)
			}
		})
	}
}

// No Interruption waits longer than the limit, for any number of nodes. The barrier's memory is
// freed with the Interruptions.
func TestBarrierHasTimeLimitAndFreesMemory(t *testing.T) {
	var b cordonBarrier
	none := func(string) bool { return false }
	now := start
	for i := range 2000 { // one each 10 ms, and none can be cordoned
		now = now.Add(10 * time.Millisecond)
		b.observe(nil, arriving(fmt.Sprint("i-", i)), now)
		wait, _ := b.wait("i-0", start, now, none)
		if waited := now.Sub(start); waited >= barrierTimeout && wait > 0 {
			t.Fatalf("it still waits after %s", waited)
		}
	}
	for i := range 2000 {
		b.forget(fmt.Sprint("i-", i))
	}
	if n := len(b.pending) + len(b.waiting) + len(b.cordoned); n > 0 {
		t.Errorf("%d entries are kept", n)
	}
}

// The nodes of requests and approvals of one second are cordoned before any pod moves.
func TestDrainsOfOneSecondShareTheBarrier(t *testing.T) {
	first, second := fmt.Sprintf("i-%017d", 0), fmt.Sprintf("i-%017d", 1)
	for name, begin := range map[string]func(w *world, name string){
		"request": func(w *world, name string) {
			w.edit(name, func(in *v1beta1.Interruption) { in.Spec.Notices = append(in.Spec.Notices, request(time.Time{})) })
		},
		"approval": func(w *world, name string) {
			w.edit(name, func(in *v1beta1.Interruption) { in.Spec.Approval = w.by(about) })
		},
	} {
		for _, restarts := range []bool{false, true} {
			if restarts && name == "approval" {
				continue // the first list of the informer does not show that it is new
			}
			t.Run(fmt.Sprintf("%s, restart %t", name, restarts), func(t *testing.T) {
				w := fleet(t, 2, team(func(s *v1beta1.InterruptionPolicySpec) {
					s.Rules = []v1beta1.Rule{{Kinds: []string{notice.KindRequested}, Action: v1beta1.ActionDrain}, {
						Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Approval: v1beta1.ApprovalRequired, NotBefore: &metav1.Duration{Duration: 24 * time.Hour},
					}}
				}), start.Add(12*time.Hour))
				w.each(time.Second)
				w.each(time.Minute)
				if w.phases()[v1beta1.PhaseAwaitingApproval] != 2 || len(w.evictions) > 0 {
					t.Fatalf("phases %v, evicted %v", w.phases(), w.evictions)
				}
				begin(w, first)
				begin(w, second)
				if restarts {
					w.loop, w.informed = New(w.loop.Options), nil
				}
				w.eachOnce(first) // the other worker is a little later
				w.eachOnce(first)
				if len(w.evictions) > 0 {
					t.Fatalf("evicted %v while n1 is not cordoned", w.evictions)
				}
				for range 5 {
					w.now = w.now.Add(time.Second)
					w.eachOnce(first, second)
				}
				if len(w.evictions) != 2 {
					t.Errorf("evicted %v once both are cordoned; phases %v", w.evictions, w.phases())
				}
			})
		}
	}
}

// eachOnce informs the barrier of every record, and then reconciles those with some names once.
func (w *world) eachOnce(names ...string) {
	w.t.Helper()
	var all v1beta1.InterruptionList
	if err := w.client.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	for i := range all.Items {
		w.inform(&all.Items[i])
	}
	for i := range all.Items {
		if !slices.Contains(names, all.Items[i].Name) {
			continue
		}
		if _, err := w.loop.Reconcile(w.t.Context(), &all.Items[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}
