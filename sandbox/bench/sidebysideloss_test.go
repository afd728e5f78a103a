package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// observation is the state of a pod in one watch event.
type observation struct {
	at             time.Time
	uid, app, node string
	ready          bool      // Ready and not terminating, as a Deployment counts
	asked          time.Time // time of its eviction or deletion; zero: none
	given, grace   time.Duration
	end            ending
}

type ending int

const (
	lives  ending = iota
	exited        // without a signal
	killed        // with exit code 137, or removed before it exited
)

// reclaim holds the observations of reclaimed nodes.
type reclaim struct {
	warned, deadline, until time.Time
	wanted                  map[string]int // pods, by app
	interrupted             map[string]bool
	off                     map[string]time.Time // when each interrupted node lost power
	sightings               []observation        // in order
}

// loss is the disruption that a reclaim caused.
type loss struct {
	wanted, lowest int           // wanted pods, and the fewest that were Ready
	below          time.Duration // total time in which any app lacked a pod
	missing        time.Duration // that time, multiplied by the number of missing pods
	// short counts pods on interrupted nodes that did not have their whole grace period: it ended
	// after the deadline, was shortened, or was cut off. A pod is cut off if it was running or
	// stopping at the power off, or was killed before the end of its grace period.
	pods, short, cut int
	// recovered is the time from the warning until all wanted pods were Ready on other nodes and
	// stayed so; negative: they did not recover.
	recovered time.Duration
}

func (t loss) String() string {
	recovered := "never"
	if t.recovered >= 0 {
		recovered = fmt.Sprintf("after %.1f s", t.recovered.Seconds())
	}
	return fmt.Sprintf("lowest %d of %d ready, %.1f s below wanted, %.0f pod-seconds missing, %d of %d pods without their full grace, %d of them cut off, recovered %s",
		t.lowest, t.wanted, t.below.Seconds(), t.missing.Seconds(), t.short, t.pods, t.cut, recovered)
}

// judge computes the disruption of a reclaim, up to r.until.
func (r reclaim) judge() loss {
	t := loss{recovered: -1}
	for _, n := range r.wanted {
		t.wanted += n
	}
	t.lowest = t.wanted
	times := r.times()
	pods, seen := map[string]observation{}, 0
	for i, at := range times {
		until := r.until
		if i+1 < len(times) {
			until = times[i+1]
		}
		for ; seen < len(r.sightings) && !r.sightings[seen].at.After(at); seen++ {
			pods[r.sightings[seen].uid] = r.sightings[seen]
		}
		ready, elsewhere := r.readyAt(at, pods)
		t.lowest = min(t.lowest, ready)
		if ready < t.wanted {
			t.below += until.Sub(at)
			t.missing += time.Duration(t.wanted-ready) * until.Sub(at)
		}
		switch {
		case elsewhere < t.wanted:
			t.recovered = -1
		case t.recovered < 0:
			t.recovered = at.Sub(r.warned)
		}
	}
	for _, d := range r.leaving() {
		t.pods++
		cut, short := d.graceLost(r.off[d.node], r.deadline)
		if cut {
			t.cut++
		}
		if short {
			t.short++
		}
	}
	return t
}

// times returns the times of all changes since the warning.
func (r reclaim) times() []time.Time {
	all := []time.Time{r.warned}
	for _, s := range r.sightings {
		all = append(all, s.at)
	}
	for _, at := range r.off {
		all = append(all, at)
	}
	all = slices.DeleteFunc(all, func(t time.Time) bool { return t.Before(r.warned) || t.After(r.until) })
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// readyAt counts the Ready pods, and those on nodes that stay. Surplus pods of one app do not
// compensate for another app.
func (r reclaim) readyAt(t time.Time, pods map[string]observation) (ready, elsewhere int) {
	all, staying := map[string]int{}, map[string]int{}
	for _, s := range pods {
		off, poweredOff := r.off[s.node]
		if !s.ready || s.end != lives || poweredOff && !off.After(t) {
			continue
		}
		all[s.app]++
		if !r.interrupted[s.node] {
			staying[s.app]++
		}
	}
	for app, n := range r.wanted {
		ready += min(all[app], n)
		elsewhere += min(staying[app], n)
	}
	return ready, elsewhere
}

// departure is how a pod left an interrupted node.
type departure struct {
	node         string
	asked, ended time.Time // zero: not evicted, or not ended
	given, grace time.Duration
	how          ending
}

// leaving returns the pods that were on interrupted nodes at the warning or later.
func (r reclaim) leaving() map[string]departure {
	all := map[string]departure{}
	for _, s := range r.sightings {
		d := all[s.uid]
		if !r.interrupted[s.node] || !d.ended.IsZero() {
			continue
		}
		d.node, d.grace = s.node, s.grace
		if d.asked.IsZero() {
			d.asked, d.given = s.asked, s.given
		}
		if s.end == lives {
			d.given = min(d.given, s.given) // a second eviction may shorten the grace period
		} else {
			d.ended, d.how = s.at, s.end
		}
		all[s.uid] = d
	}
	for uid, d := range all {
		if !d.ended.IsZero() && d.ended.Before(r.warned) {
			delete(all, uid)
		}
	}
	return all
}

// second is the time resolution of the API server and the simulated kubelets.
const second = time.Second

// graceLost reports whether a pod was cut off when its node lost power at off, and whether its grace
// period was too short.
func (d departure) graceLost(off, deadline time.Time) (cut, short bool) {
	whole := d.asked.Add(d.grace)
	switch {
	case d.asked.IsZero():
		cut = !off.IsZero() || !d.ended.IsZero()
		return cut, cut
	case !off.IsZero() && (d.ended.IsZero() || d.ended.After(off)):
		cut = whole.After(off.Add(second))
	case d.how == killed:
		cut = d.ended.Before(whole.Add(-second))
	}
	return cut, cut || d.given < d.grace || whole.After(deadline.Add(second))
}

func TestReclaimLoss(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 5, 11, 9, 30, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(second))) }
	on := func(seconds float64, uid, node string) observation {
		return observation{at: at(seconds), uid: uid, app: "web", node: node, ready: true, grace: podGrace}
	}
	stopping := func(asked float64, uid, node string, given time.Duration) observation {
		return observation{at: at(asked), uid: uid, app: "web", node: node, asked: at(asked), given: given, grace: podGrace}
	}
	ends := func(s observation, seconds float64, how ending) observation {
		s.at, s.end = at(seconds), how
		return s
	}
	a, b := on(-5, "a", "old"), on(-5, "b", "old")
	for name, c := range map[string]struct {
		off  float64 // 0: has power
		seen []observation
		want loss
	}{
		"nothing moves before the power off": {120, []observation{a, b}, loss{
			wanted: 2, below: 30 * second, missing: 60 * second, pods: 2, short: 2, cut: 2, recovered: -1,
		}},
		"successors first": {60, []observation{
			a, b, on(40, "c", "new"), on(40, "d", "new"), stopping(41, "a", "old", podGrace), stopping(41, "b", "old", podGrace),
			ends(stopping(41, "a", "old", podGrace), 51, exited), ends(stopping(41, "b", "old", podGrace), 51, exited),
		}, loss{wanted: 2, lowest: 2, pods: 2, recovered: 40 * second}},
		"pods first": {16, []observation{
			a, b, stopping(1, "a", "old", podGrace), stopping(1, "b", "old", podGrace),
			ends(stopping(1, "a", "old", podGrace), 11, exited), ends(stopping(1, "b", "old", podGrace), 11, exited),
			on(36, "c", "new"), on(37, "d", "new"),
		}, loss{wanted: 2, below: 36 * second, missing: 71 * second, pods: 2, recovered: 37 * second}},
		"evicted too late for the whole grace, but ended in time": {120, []observation{
			a, on(0, "c", "new"), stopping(105, "a", "old", podGrace), ends(stopping(105, "a", "old", podGrace), 115, exited), on(115, "d", "new"),
		}, loss{wanted: 2, lowest: 1, below: 10 * second, missing: 10 * second, pods: 1, short: 1, recovered: 115 * second}},
		"cut off while stopping": {120, []observation{
			a, on(0, "c", "new"), on(0, "d", "new"), stopping(112, "a", "old", podGrace), ends(stopping(112, "a", "old", podGrace), 140, killed),
		}, loss{wanted: 2, lowest: 2, pods: 1, short: 1, cut: 1, recovered: 0}},
		"grace shortened by a second eviction, then killed": {0, []observation{
			a, on(0, "c", "new"), on(0, "d", "new"), stopping(10, "a", "old", podGrace), stopping(10, "a", "old", 2*second),
			ends(stopping(10, "a", "old", 2*second), 12, killed),
		}, loss{wanted: 2, lowest: 2, pods: 1, short: 1, cut: 1, recovered: 0}},
		"killed at the end of its grace": {0, []observation{
			a, on(0, "c", "new"), on(0, "d", "new"), stopping(10, "a", "old", podGrace), ends(stopping(10, "a", "old", podGrace), 30.2, killed),
		}, loss{wanted: 2, lowest: 2, pods: 1, recovered: 0}},
		"one pod gone before the warning, one surplus pod": {0, []observation{
			ends(stopping(-20, "z", "old", podGrace), -10, exited), on(-1, "c", "new"), on(-1, "d", "new"), on(-1, "e", "new"),
		}, loss{wanted: 2, lowest: 2, recovered: 0}},
		"recovery that is lost again": {0, []observation{
			on(-1, "c", "new"), on(5, "d", "new"), ends(stopping(10, "d", "new", podGrace), 20, exited), on(25, "e", "new"),
		}, loss{wanted: 2, lowest: 1, below: 10 * second, missing: 10 * second, recovered: 25 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reclaim{
				warned: begin, deadline: at(120), until: at(150), wanted: map[string]int{"web": 2}, interrupted: map[string]bool{"old": true},
				sightings: c.seen,
			}
			if c.off > 0 {
				r.off = map[string]time.Time{"old": at(c.off)}
			}
			if diff := cmp.Diff(c.want, r.judge(), cmp.AllowUnexported(loss{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
