package interruption

import (
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
)

// arriving returns an Interruption as it arrives.
func arriving(name string) *v1beta1.Interruption {
	in := recordOf(spot())
	in.Name, in.Spec.InstanceID = name, name
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
		"the other was deleted": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			b.forget("b")
		}, after: time.Second, cordoned: none},
		"the other is finished": {build: func(b *cordonBarrier) {
			b.observe(nil, arriving("b"), start)
			done := arriving("b")
			at := status.MicroTime(start)
			done.Status.CompletionTime, done.Status.HandledNotices = &at, []string{"spot-1"}
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
