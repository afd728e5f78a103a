//go:build e2e

package real

import (
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

const (
	hook = 10 * time.Second // duration of every preStop hook that must complete

	// ahead is the time from the warning to the power-off, for tests that do not depend on the
	// deadline. Lifeboat assumes two minutes for every warning, so
	// tests of the deadline use two minutes.
	ahead = 50 * time.Second

	// after is how long a load continues after the power off: requests to the dead node fail within
	// the client's timeout.
	after = 8 * time.Second

	surge = `[{kinds: [SpotInterruption], action: Drain, strategy: Surge}]`
	evict = `[{kinds: [SpotInterruption], action: Drain, strategy: Evict}]`
)

// TestReclaim reclaims spot instances with Lifeboat running, through the whole path: EC2's warning,
// rule, queue, Lifeboat, deadline, power off.
func TestReclaim(t *testing.T) {
	needWorld(t)
	t.Run("two replicas surge without failed requests, as installed", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "pair", Replicas: 2, PreStop: hook}
		seen := underLoad(t, w, "", reclaimed{wholeHooks: true, replacedFirst: true})
		if seen.Failed != 0 {
			t.Errorf("requests failed: %s", seen)
		}
	})
	t.Run("twin: without preStop requests fail", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "hookless", Replicas: 2}
		requireFailures(t, underLoad(t, w, surge, reclaimed{}))
	})
	t.Run("twin: evicted, slow to start, no budget", func(t *testing.T) {
		t.Parallel()
		w := web{Name: "slow", Replicas: 2, PreStop: hook, ReadyAfter: 20 * time.Second}
		requireFailures(t, underLoad(t, w, evict, reclaimed{wholeHooks: true}))
	})
	t.Run("a single replica under minAvailable 1 surges without failed requests", func(t *testing.T) {
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
		requireFailures(t, underLoad(t, w, evict, reclaimed{wholeHooks: true}))
	})
	t.Run("Karpenter's node surges to the next one that it launches", karpenterReplacesFirst)
	t.Run("protected pods complete their hooks before the power off", heldPods)
	t.Run("long-lived connections", longLivedConnections)
}

// reclaimed is what underLoad checks after a reclaim, besides failed requests.
type reclaimed struct {
	wholeHooks    bool // of the pods on the interrupted node
	replacedFirst bool
}

// underLoad reclaims the node of a server while requests arrive, and returns their results.
func underLoad(t *testing.T, w web, rules string, want reclaimed) traffic {
	t.Helper()
	s := needWorld(t)
	loads <- struct{}{}
	defer func() { <-loads }()
	interrupted := s.interrupted(w.pool())
	if rules != "" {
		s.policy(w.pool(), rules)
	}
	return s.reclaimUnderLoad(w, interrupted, s.place(w, interrupted), want)
}

// reclaimUnderLoad reclaims the instance of a server's pods while requests arrive.
func (s *stage) reclaimUnderLoad(w web, interrupted ec2.Instance, old []string, want reclaimed) traffic {
	s.t.Helper()
	load := s.load(w, "/")
	s.sleep(2 * time.Second) // undisturbed traffic, for the rate before the warning

	warned := s.reclaim(interrupted, ahead)
	off := s.waitPowerOff(interrupted, ahead+30*time.Second)
	s.sleep(after)
	seen := load.stop()

	before := seen.rate(seen.Began, warned)
	s.t.Logf("%.0f requests a second before the warning", before)
	if seen.Failed == 0 && before < minRate {
		s.t.Errorf("only %.0f requests a second: too few to show a loss", before)
	}
	oldJournals := s.readJournals(old)
	for _, l := range oldJournals {
		if want.wholeHooks {
			s.check(l.whole(w.PreStop, off))
		}
	}
	if want.replacedFirst {
		s.check(replacedFirst(oldJournals, s.otherJournals(w.Name, old)))
	}
	return seen
}

// loads limits the loads that run at the same time. On two cores, more of them would each send too
// few requests to show a loss.
var loads = make(chan struct{}, 3)

// minRate is the least rate of a load without a failed request. In the twins requests fail for
// seconds, so a lower rate than usual (150 and more on two idle cores) shows a loss too.
const minRate = 25

// requireFailures fails a twin in which no request failed: then the setup cannot detect a loss.
func requireFailures(t *testing.T, seen traffic) {
	t.Helper()
	if seen.Failed == 0 {
		t.Errorf("no request failed (%s): the setup cannot detect a loss", seen)
	}
}

// heldPods reclaims the node of three pods with the full two minutes: one has do-not-disrupt, one a
// PodDisruptionBudget that allows no eviction, and one a grace period longer than the notice.
func heldPods(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	const pool = "held"
	interrupted := s.interrupted(pool)
	s.policy(pool, evict)
	quiet := s.place(web{
		Name: "quiet", Pool: pool, Replicas: 1, PreStop: hook,
		Annotations: map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"},
	}, interrupted)
	budgeted := s.place(web{Name: "budgeted", Pool: pool, Replicas: 1, PreStop: hook, MinAvailable: 1, ReadyAfter: time.Second}, interrupted)
	patient := s.place(web{Name: "patient", Pool: pool, Replicas: 1, PreStop: 5 * time.Minute, Grace: 600}, interrupted)

	warned := s.reclaim(interrupted, 0) // two minutes
	off := s.waitPowerOff(interrupted, 150*time.Second)

	for _, l := range append(s.readJournals(quiet), s.readJournals(budgeted)...) {
		s.check(l.whole(hook, off))
		// The protections must have delayed the evictions for most of the notice.
		if waited := l.HookBegin.Sub(warned); waited < 30*time.Second {
			t.Errorf("%s was asked to stop after %s", l.Pod, waited)
		}
		t.Logf("FIGURES %s: %s asked %s, hook whole %s, power off %s", t.Name(), l.Pod,
			since(warned, l.HookBegin), since(warned, l.HookEnd), since(warned, off))
	}
	for _, l := range s.readJournals(patient) {
		s.check(l.shortened(off))
		t.Logf("FIGURES %s: %s with a grace of 10 min asked %s, SIGTERM %s, power off %s", t.Name(), l.Pod,
			since(warned, l.HookBegin), since(warned, l.SIGTERM), since(warned, off))
	}
}

// longLivedConnections checks the results that the guide states for open connections. A Service's
// rules apply to new connections; an open one stays with its pod until one side closes it.
func longLivedConnections(t *testing.T) {
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
	warned := s.reclaim(interrupted, 0)
	off := s.waitPowerOff(interrupted, 150*time.Second)
	s.sleep(after)
	got := map[string]traffic{}
	for _, w := range webs {
		got[w.Name] = running[w.Name].stop()
		for _, l := range s.readJournals(old[w.Name]) {
			s.check(l.whole(hook, off))
			t.Logf("FIGURES %s: %s asked %s, SIGTERM %s, ended in time %s, power off %s", t.Name(), l.Pod,
				since(warned, l.HookBegin), since(warned, l.SIGTERM), since(warned, l.Exit), since(warned, off))
		}
	}
	for _, name := range []string{"keep-leave", "download-long"} {
		if got[name].Failed != 0 {
			t.Errorf("%s: %s", name, got[name])
		}
	}
	for _, name := range []string{"keep-exit", "download-short"} {
		if got[name].Failed == 0 {
			t.Errorf("%s: %s: the setup cannot detect a loss", name, got[name])
		}
	}
	for _, name := range []string{"keep-exit", "keep-graceful"} {
		// Most clients retry requests that failed on a reused connection.
		if got[name].OnReused != got[name].Failed {
			t.Errorf("%s: %d on new connections: %s", name, got[name].Failed-got[name].OnReused, got[name])
		}
	}
}

// since formats the time from one event to another.
func since(from, to time.Time) string {
	if to.IsZero() {
		return "never"
	}
	return fmt.Sprintf("at +%.1f s", to.Sub(from).Seconds())
}
