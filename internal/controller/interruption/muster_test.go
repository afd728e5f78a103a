package interruption

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// The more nodes are doomed, the longer each is waited for, within a bound: with a
// thousand the last is cordoned after nine seconds on a small control plane.
func TestManyAreWaitedForLonger(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	for n, want := range map[int]time.Duration{1: patience, 101: patience + time.Second, 5000: mostPatience} {
		var m muster
		for i := range n {
			in := &v1alpha1.Interruption{}
			in.Name = fmt.Sprint("i-", i)
			in.Spec.Notices = []v1alpha1.Notice{{ReceivedTime: metav1.NewMicroTime(now)}}
			m.hear(in)
		}
		var longest time.Duration
		for _, until := range m.open {
			longest = max(longest, until.Sub(now))
		}
		if longest != want {
			t.Errorf("of %d nodes one is waited for for %s, want %s", n, longest, want)
		}
	}
}

// While many come at once, who is cordoned waits a moment for those not heard of yet; of
// a few, or once none has come for a while, nobody is supposed.
func TestMoreAreSupposedToComeWhileManyDo(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	all := func(string) (bool, error) { return true, nil }
	for name, tc := range map[string]struct {
		came, apart, since, cordoned time.Duration
		want                         int
	}{
		"a few":             {came: swarm - 1},
		"many":              {came: swarm, apart: 100 * time.Millisecond, want: 1},
		"many, and no more": {came: swarm, apart: 100 * time.Millisecond, since: silence},
		"many, slowly":      {came: 3 * swarm, apart: burst / (swarm - 2)},
		"for too long":      {came: 3 * swarm, apart: 100 * time.Millisecond, cordoned: patienceFor(1)},
	} {
		var m muster
		for i := range tc.came {
			m.came(now.Add(-(tc.came - 1 - i) * tc.apart))
		}
		at := now.Add(tc.since)
		m.cordoned("a", at.Add(-tc.cordoned))
		if n, err := m.others("a", at, all); n != tc.want || err != nil {
			t.Errorf("%s: %d others, error %v, want %d", name, n, err, tc.want)
		}
		if n, err := m.others("b", at, all); n != 0 || err != nil {
			t.Errorf("%s: %d others, error %v, for a node that was cordoned before this process began", name, n, err)
		}
	}
}

// What this process itself was told of is no sign that others are to come: intake here knows
// whether there are. That tells nothing of what came seconds apart, or of a node that has
// waited for long.
func TestMoreAreSupposedToComeWhileIntakeIsInARush(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	all := func(string) (bool, error) { return true, nil }
	for name, tc := range map[string]struct {
		came            int
		apart, cordoned time.Duration
		rush, foreign   bool
		want            int
	}{
		"no rush":                    {came: swarm},
		"a rush":                     {came: swarm, rush: true, want: swarm + 1},
		"a rush of many":             {came: 500, cordoned: 2 * patience, rush: true, want: 501},
		"a rush of few":              {came: swarm - 1, rush: true},
		"a rush of much else":        {came: swarm, apart: burst/(swarm-1) + time.Millisecond, rush: true},
		"for too long":               {came: swarm, cordoned: patienceFor(swarm + 1), rush: true},
		"another replica writes too": {came: swarm, foreign: true, want: swarm + 1},
	} {
		c := New(Options{})
		m := &c.muster
		over := c.Rush()
		for i := range tc.came {
			id := fmt.Sprint("i-", i)
			at := now.Add(-time.Duration(tc.came-1-i) * tc.apart)
			m.foretold(id, at, true)
			m.cordoned(id, at)
			if i > 0 || !tc.foreign {
				m.isThere(id)
			} else {
				m.came(now)
			}
		}
		m.cordoned("a", now.Add(-tc.cordoned))
		if !tc.rush {
			over()
			over() // which ends it once
		}
		if n, err := m.others("a", now, all); n != tc.want || err != nil {
			t.Errorf("%s: %d others, error %v, want %d", name, n, err, tc.want)
		}
	}
}

// Who waits for what a rush may bring is looked at again as it ends, and nobody else: what the
// rest have to say is not to be written then. Where nobody listens, as in a process that does
// not lead, nothing blocks.
func TestTheEndOfARushWakesWhoWaits(t *testing.T) {
	w := newWorld(t, node("a", instance), recordOf(spot()))
	over := w.loop.Rush()
	for i := range swarm {
		w.loop.muster.foretold(fmt.Sprint("i-", i), w.loop.Clock(), true)
	}
	w.settle(time.Second)
	if woken := w.loop.ofWaiters(t.Context(), ""); len(woken) != 1 {
		t.Fatalf("of one record that waits %v are woken", woken)
	}
	w.settle(time.Second) // it waits on
	for range 3 {
		over()
		w.loop.Rush()()
	}
	if n := len(w.loop.mustered); n != 1 {
		t.Fatalf("%d are on their way", n)
	}
	if woken := w.loop.ofWaiters(t.Context(), ""); len(woken) != 1 {
		t.Errorf("of one record that waits %v are woken", woken)
	}
	w.loop.muster.waiters.are(instance, true)
	w.loop.muster.drop(instance) // as when it is deleted
	if woken := w.loop.ofWaiters(t.Context(), ""); len(woken) != 0 {
		t.Errorf("it is no more, and %v are woken", woken)
	}
	w.settle(10 * time.Second)
	if woken := w.loop.ofWaiters(t.Context(), ""); len(woken) != 0 {
		t.Errorf("none waits, and %v are woken", woken)
	}
}

// The record of a node that was cordoned ahead counts once, when it is foretold.
func TestWhatWasForetoldIsNoNews(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	var m muster
	hears := m.hears(func() time.Time { return now })
	for i := range 2 * swarm {
		in := &v1alpha1.Interruption{}
		in.Name = fmt.Sprint("i-", i)
		m.foretold(in.Name, now, true)
		hears.Create(event.CreateEvent{Object: in})
		if m.turn != i+1 || !m.unforetold.IsZero() {
			t.Fatalf("after %d: %d are counted, the last not foretold came at %s", i+1, m.turn, m.unforetold)
		}
	}
	in := &v1alpha1.Interruption{}
	in.Name = "i-other"
	hears.Create(event.CreateEvent{Object: in})
	if !m.unforetold.Equal(now) {
		t.Error("one that was not is taken for one that was")
	}
}

// A record that this process is about to write is waited for like one that was heard of,
// but not for good: it may not come.
func TestWhatIsAboutToBeRecordedIsWaitedFor(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	c := New(Options{Clock: func() time.Time { return now }})
	c.Expect("i-b")
	marked := map[string]bool{}
	cordoned := func(name string) (bool, error) { return marked[name], nil }
	for _, tc := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {patience - time.Millisecond, 1}, {patience, 0}} {
		if n, err := c.muster.others("i-a", now.Add(tc.after), cordoned); n != tc.want || err != nil {
			t.Errorf("after %s: %d others, error %v, want %d", tc.after, n, err, tc.want)
		}
	}
	c.Expect("i-b")
	marked["i-b"] = true
	if n, err := c.muster.others("i-a", now, cordoned); n != 0 || err != nil {
		t.Errorf("once it is cordoned: %d others, error %v", n, err)
	}
}

// A replica that does not lead is told of all that it records and asked nothing.
func TestWhatIsExpectedIsForgotten(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	var m muster
	for i := range 10_000 {
		m.expect(fmt.Sprint("i-", i), now.Add(time.Duration(i)*time.Second))
	}
	if len(m.open) > 10*swarm {
		t.Errorf("%d records are held", len(m.open))
	}
}

// A node that this process has just cordoned is not looked up: the cache may be behind.
func TestWhatWasJustCordonedIsNotWaitedFor(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	cordoned := func(string) (bool, error) { return false, nil } // as the cache has it
	for since, want := range map[time.Duration]int{0: 0, markLasts - time.Millisecond: 0, markLasts: 1} {
		var m muster
		m.expect("i-b", now)
		m.cordoned("i-b", now.Add(-since))
		if n, err := m.others("i-a", now, cordoned); n != want || err != nil {
			t.Errorf("%s after it was cordoned: %d others, error %v, want %d", since, n, err, want)
		}
	}
}
