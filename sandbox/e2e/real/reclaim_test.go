//go:build e2e

package real

import (
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

const (
	hook = 10 * time.Second // of every preStop hook that is to run whole

	// ahead is how long before the power goes the reclaims are warned of where
	// the end is only there to show that nothing was left on the node. Lifeboat
	// takes every warning for one of two minutes, so what depends on the deadline
	// has all of these.
	ahead = 50 * time.Second

	// after is how long a load goes on when the power is gone: failures of what
	// still went to the dead node show within the client's time-out.
	after = 8 * time.Second

	surge = `[{kinds: [SpotInterruption], action: Drain, strategy: Surge}]`
	evict = `[{kinds: [SpotInterruption], action: Drain, strategy: Evict}]`
)

// TestReclaim takes spot nodes back, all of them with Lifeboat in charge, along
// the whole way: EC2's warning, rule, queue, Lifeboat, deadline, power cut.
func TestReclaim(t *testing.T) {
	needWorld(t)
	t.Run("two replicas surge and lose nothing", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "pair", Replicas: 2, PreStop: hook}
		seen := underLoad(t, w, surge, reclaimed{wholeHooks: true, replacedFirst: true})
		if seen.Failed != 0 {
			t.Errorf("requests failed: %s", seen)
		}
	})
	t.Run("twin: without preStop requests are lost", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "hookless", Replicas: 2}
		loses(t, underLoad(t, w, surge, reclaimed{}))
	})
	t.Run("twin: evicted, slow to start, no budget", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "slow", Replicas: 2, PreStop: hook, ReadyAfter: 20 * time.Second}
		loses(t, underLoad(t, w, evict, reclaimed{wholeHooks: true}))
	})
	t.Run("a single replica under minAvailable 1 surges and loses nothing", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "single", Replicas: 1, MinAvailable: 1, PreStop: hook, ReadyAfter: 15 * time.Second}
		seen := underLoad(t, w, surge, reclaimed{wholeHooks: true, replacedFirst: true})
		if seen.Failed != 0 {
			t.Errorf("requests failed: %s", seen)
		}
	})
	t.Run("twin: a single replica, evicted, no budget", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "alone", Replicas: 1, PreStop: hook, ReadyAfter: 15 * time.Second}
		loses(t, underLoad(t, w, evict, reclaimed{wholeHooks: true}))
	})
	t.Run("what is held gets its hook before the power goes", heldPods)
	t.Run("connections that last", lastingConnections)
}

// reclaimed is what has to be true of a reclaim, besides its failures.
type reclaimed struct {
	wholeHooks    bool // of the pods on the interrupted node
	replacedFirst bool
}

// underLoad takes the node of a server back while requests come, and returns
// what came of them.
func underLoad(t *testing.T, w web, rules string, want reclaimed) traffic {
	t.Helper()
	s := needWorld(t)
	loads <- struct{}{}
	defer func() { <-loads }()
	interrupted := s.interrupted(w.pool())
	if rules != "" {
		s.policy(w.pool(), rules)
	}
	old := s.place(w, interrupted)
	load := s.load(w, "/")
	s.pass(2 * time.Second) // of undisturbed traffic, to measure by

	told := s.reclaim(interrupted, ahead)
	off := s.dark(interrupted, ahead+30*time.Second)
	s.pass(after)
	seen := load.stop()

	if before := seen.rate(seen.Began, told); before < minRate {
		t.Errorf("only %.0f requests a second: too few to show anything", before)
	} else {
		t.Logf("%.0f requests a second before the warning", before)
	}
	lives := s.lives(old)
	for _, l := range lives {
		if want.wholeHooks {
			s.holds(l.whole(w.PreStop, off))
		}
	}
	if want.replacedFirst {
		s.holds(replacedFirst(lives, s.others(w.Name, old)))
	}
	return seen
}

// loads has a place for each load that may run. More of them at once leave each other so
// little of two cores that too few requests come to show anything.
var loads = make(chan struct{}, 3)

// minRate is the least that a load has to bring; some run side by side on two
// cores.
const minRate = 150

// loses fails a twin that shows nothing: what it is the twin of proves nothing
// then.
func loses(t *testing.T, seen traffic) {
	t.Helper()
	if seen.Failed == 0 {
		t.Errorf("no request failed (%s): the rig cannot show what it is there to show", seen)
	}
}

// heldPods: one pod says that it must not be disturbed, one a budget holds, and
// one asks for more time to stop than there is. There are the whole two minutes.
func heldPods(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	const pool = "held"
	interrupted := s.interrupted(pool)
	s.policy(pool, evict)
	quiet := s.place(web{
		Name: "quiet", Pool: pool, Replicas: 1, PreStop: hook,
		Annotations: map[string]string{v1alpha1.AnnotationDoNotDisrupt: "true"},
	}, interrupted)
	budgeted := s.place(web{Name: "budgeted", Pool: pool, Replicas: 1, PreStop: hook, MinAvailable: 1, ReadyAfter: time.Second}, interrupted)
	patient := s.place(web{Name: "patient", Pool: pool, Replicas: 1, PreStop: 5 * time.Minute, Grace: 600}, interrupted)

	told := s.reclaim(interrupted, 0) // two minutes
	off := s.dark(interrupted, 150*time.Second)

	for _, l := range append(s.lives(quiet), s.lives(budgeted)...) {
		s.holds(l.whole(hook, off))
		// What holds them counts for something: they were let be for most of it.
		if waited := l.HookBegin.Sub(told); waited < 30*time.Second {
			t.Errorf("%s was asked to stop after %s", l.Pod, waited)
		}
		t.Logf("FIGURES %s: %s asked %s, hook whole %s, power off %s", t.Name(), l.Pod,
			since(told, l.HookBegin), since(told, l.HookEnd), since(told, off))
	}
	for _, l := range s.lives(patient) {
		s.holds(l.shortened(off))
		t.Logf("FIGURES %s: %s with a grace of 10 min asked %s, SIGTERM %s, power off %s", t.Name(), l.Pod,
			since(told, l.HookBegin), since(told, l.SIGTERM), since(told, off))
	}
}

// lastingConnections: the Service's rules are for new connections; one that is
// open goes on to its pod until somebody ends it. What becomes of those is as
// the guide says.
func lastingConnections(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	const pool = "lasting"
	interrupted := s.interrupted(pool)
	s.policy(pool, surge)
	webs := []web{
		{Name: "keep-exit", PreStop: hook, AtSIGTERM: "exit"},
		{Name: "keep-graceful", PreStop: hook, AtSIGTERM: "graceful"},
		{Name: "keep-leave", PreStop: hook, AtSIGTERM: "graceful", Leave: true},
		{Name: "download-short", PreStop: hook, AtSIGTERM: "graceful"},
		{Name: "download-long", PreStop: hook, AtSIGTERM: "graceful", Grace: 90},
	}
	old := map[string][]string{}
	for i := range webs {
		webs[i].Pool, webs[i].Replicas = pool, 2
		old[webs[i].Name] = s.place(webs[i], interrupted)
	}
	running := map[string]*load{}
	for _, w := range webs[:3] {
		running[w.Name] = s.load(w, "/", "--mode=keep-alive", "--workers=8", "--pause=100ms")
	}
	for _, w := range webs[3:] {
		running[w.Name] = s.load(w, "/download?seconds=60", "--mode=download", "--workers=4")
	}
	told := s.reclaim(interrupted, 0)
	off := s.dark(interrupted, 150*time.Second)
	s.pass(after)
	got := map[string]traffic{}
	for _, w := range webs {
		got[w.Name] = running[w.Name].stop()
		for _, l := range s.lives(old[w.Name]) {
			s.holds(l.whole(hook, off))
			t.Logf("FIGURES %s: %s asked %s, SIGTERM %s, ended in time %s, power off %s", t.Name(), l.Pod,
				since(told, l.HookBegin), since(told, l.SIGTERM), since(told, l.Exit), since(told, off))
		}
	}
	for _, name := range []string{"keep-leave", "download-long"} {
		if got[name].Failed != 0 {
			t.Errorf("%s: %s", name, got[name])
		}
	}
	for _, name := range []string{"keep-exit", "download-short"} {
		if got[name].Failed == 0 {
			t.Errorf("%s: %s: the rig cannot show what it is there to show", name, got[name])
		}
	}
	for _, name := range []string{"keep-exit", "keep-graceful"} {
		// Those that most clients would repeat by themselves.
		if got[name].OnReused != got[name].Failed {
			t.Errorf("%s: %d on new connections: %s", name, got[name].Failed-got[name].OnReused, got[name])
		}
	}
}

// since is how long after a moment another was, in words.
func since(from, to time.Time) string {
	if to.IsZero() {
		return "never"
	}
	return fmt.Sprintf("at +%.1f s", to.Sub(from).Seconds())
}
