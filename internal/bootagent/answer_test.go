package bootagent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

// The machine is suspended before each action of its agent while it warms. Then the hook is
// completed by others, and the machine enters the pool and leaves it. It wakes up in the second
// firing of the hook that it was about to complete.
func TestRace05LateCompleteHitsTheNextFiring(t *testing.T) {
	t.Parallel()
	h := host()
	h.Prepare, h.ReadyFor = []string{"set-up"}, 2*time.Minute
	asleep := 0
	for at := 1; at <= 60; at++ {
		run(t, pooled(autoscaling.WarmedRunning), h, func(w *world) {
			m := w.only()
			m.SuspendAt(at)
			for range 10 * 60 {
				if pass(time.Second); m.Suspended() || m.State() == "Warmed:Running" {
					break
				}
			}
			if m.Suspended() {
				asleep++
			}
			if m.State() == "Warmed:Pending:Wait" {
				w.completeAs(m, "lifeboat-launch")
			}
			w.comesTo(m, "Warmed:Running", time.Minute)
			w.scale(1)
			w.comesTo(m, "Pending:Wait", time.Minute)
			pass(time.Minute)
			m.Wake()
			w.comesTo(m, "InService", 15*time.Minute)
			w.serves(m)
			if early := m.When("node is Ready").Sub(w.entered(m, "Pending:Proceed")); early > 0 {
				w.t.Errorf("suspended at %d: answered %s before the node was Ready:\n%s", at, early, m.History())
			}
		})
	}
	if asleep < 30 {
		t.Errorf("the machine was suspended in only %d of 60 runs", asleep)
	}
}

func TestRace13SlowBootOutlivesTheHook(t *testing.T) {
	t.Parallel()
	short := pooled(autoscaling.WarmedStopped)
	short.Hooks[0].Heartbeat = 2 * time.Minute
	t.Run("that makes progress", func(t *testing.T) {
		h := warming()
		h.RunFor = 6 * time.Minute
		run(t, short, h, func(w *world) {
			m := w.only()
			w.comesTo(m, "Warmed:Stopped", 25*time.Minute)
			w.expectFirings("lifeboat-launch", answered)
			if n := w.calls("RecordLifecycleActionHeartbeat"); n < 18 || n > 36 {
				w.t.Errorf("%d heartbeats in 18 minutes for a hook of two", n)
			}
		})
	})
	t.Run("that makes none", func(t *testing.T) {
		h := warming()
		h.RunFor, h.Stall = 24*time.Hour, 5*time.Minute
		run(t, short, h, func(w *world) {
			m := w.only()
			w.until(15*time.Minute, "the hook's time is out", func() bool { return m.State() == "" || strings.Contains(m.State(), "Terminat") })
			if got := w.firings("lifeboat-launch")[0]; got != "timeout ABANDON" {
				w.t.Errorf("it ended by %s", got)
			}
			if !w.hasLogged("there was no progress for 5m0s") {
				w.t.Error("the log has no reason")
			}
		})
	})
	t.Run("that has no patience left", func(t *testing.T) {
		h := host()
		h.Prepare, h.RunFor, h.Patience = strings.Split(strings.Repeat("more ", 20), " ")[:20], 2*time.Minute, 20*time.Minute
		for i := range h.Prepare {
			h.Prepare[i] += fmt.Sprint(i)
		}
		run(t, short, h, func(w *world) {
			m := w.only()
			took := w.until(30*time.Minute, "the hook's time is out", func() bool { return m.State() == "" || strings.Contains(m.State(), "Terminat") })
			if took < 20*time.Minute || took > 24*time.Minute {
				w.t.Errorf("it was held for %s", took)
			}
		})
	})
	t.Run("that has failed finally", func(t *testing.T) {
		h := host()
		h.Prepare, h.Fails, h.RunFor, h.Abandon = []string{"set-up"}, "set-up", 0, true
		run(t, cold(1), h, func(w *world) {
			m := w.only()
			took := w.until(10*time.Minute, "the launch is abandoned", func() bool { return m.State() == "" || strings.Contains(m.State(), "Terminat") })
			if got := w.firings("lifeboat-launch")[0]; got != "answer ABANDON" || took > 4*time.Minute || m.Happened("run set-up") < 5 {
				w.t.Errorf("after %s it ended by %s:\n%s", took, got, m.History())
			}
		})
	})
	t.Run("of which an image is missing", func(t *testing.T) {
		h := warming()
		h.Fails = "registry.example/b:2"
		run(t, pooled(autoscaling.WarmedStopped), h, func(w *world) {
			m := w.intoPool()
			if m.Happened("run ctr -n k8s.io images pull registry.example/b:2") != 5 {
				w.t.Errorf("how often it was tried:\n%s", m.History())
			}
		})
	})
}

// An outage of two minutes must not cost more than its duration, at any time.
func TestRace15NetworkRestartsWhileItAnswers(t *testing.T) {
	t.Parallel()
	for _, cuts := range []boottest.Cuts{{AWS: true}, {Metadata: true}, {Cluster: true}, {AWS: true, Metadata: true, Cluster: true}} {
		for at := time.Second; at < 70*time.Second; at += 6 * time.Second {
			run(t, cold(1), host(), func(w *world) {
				m := w.only()
				pass(at)
				m.Cut(cuts)
				pass(2 * time.Minute)
				m.Cut(boottest.Cuts{})
				w.comesTo(m, "InService", 90*time.Second)
				w.serves(m)
				w.expectFirings("lifeboat-launch", answered)
			})
		}
	}
}

func TestRace26TwoAnswerAtOnce(t *testing.T) {
	t.Parallel()
	for late := time.Duration(0); late < 12*time.Second; late += time.Second {
		run(t, cold(1), host(), func(w *world) {
			m := w.only()
			w.until(5*time.Minute, "the node is there", func() bool { return m.Happened("node registers") == 1 })
			pass(late)
			if len(w.as.Actions(m.ID)) > 0 {
				w.completeAs(m, "lifeboat-launch")
			}
			pass(5 * time.Minute)
			w.serves(m)
			w.expectFirings("lifeboat-launch", answered)
			if n := w.calls("CompleteLifecycleAction"); n > 2 || !strings.Contains(m.Status().Reason, "nothing holds the machine") {
				w.t.Errorf("answered %d times: %+v", n, m.Status())
			}
		})
	}
}

func TestRace27SeveralHooksOnOneTransition(t *testing.T) {
	t.Parallel()
	g := cold(1)
	g.Hooks = append(g.Hooks,
		autoscaling.Hook{Name: "codedeploy", Transition: autoscaling.Launching, Heartbeat: time.Hour},
		autoscaling.Hook{Name: "lifeboat-more", Transition: autoscaling.Launching, Heartbeat: time.Hour})
	run(t, g, host(), func(w *world) {
		m := w.only()
		w.until(5*time.Minute, "its own are answered", func() bool {
			return len(w.firings("lifeboat-more")) == 1 && w.firings("lifeboat-launch")[0] == answered && w.firings("lifeboat-more")[0] == answered
		})
		pass(20 * time.Minute)
		if m.State() != "Pending:Wait" || !strings.Contains(m.Status().Reason, "codedeploy may hold it as well") {
			w.t.Errorf("it is %s, and says %+v", m.State(), m.Status())
		}
		if n := w.calls("CompleteLifecycleAction"); n > 50 {
			w.t.Errorf("answered %d times in 20 minutes", n)
		}
		w.completeAs(m, "codedeploy")
		w.comesTo(m, "InService", time.Minute)
		pass(2 * time.Minute)
		if !strings.Contains(m.Status().Reason, "nothing holds the machine") {
			w.t.Errorf("it says %+v", m.Status())
		}
	})
	g.Hooks = []autoscaling.Hook{{Name: "codedeploy", Transition: autoscaling.Launching, Heartbeat: time.Hour}}
	run(t, g, host(), func(w *world) {
		m := w.only()
		pass(10 * time.Minute)
		if !strings.Contains(m.Status().Reason, "held by codedeploy, which --hooks does not name") || w.calls("CompleteLifecycleAction") != 0 {
			w.t.Errorf("it says %+v", m.Status())
		}
		w.completeAs(m, "codedeploy")
		pass(3 * time.Minute)
		w.serves(m)
	})
}

func TestRace28ManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 40
	g := cold(many)
	h := host()
	h.Dice = dice(1)
	run(t, g, h, func(w *world) {
		w.Gate.Limit("autoscaling", "*", 2, 10)
		// docs/guides/warm-pools.md gives both figures.
		took := w.until(4*time.Minute, "all are in service", func() bool {
			n := 0
			for _, m := range w.fleet.Machines() {
				if m.State() == "InService" {
					n++
				}
			}
			return n == many
		})
		pass(time.Minute)
		total := 0
		for _, n := range w.Gate.AllCalls("autoscaling") {
			total += n
		}
		w.t.Logf("%d machines in service after %s with %d calls: %v", many, took, total, w.Gate.AllCalls("autoscaling"))
		if total > 12*many {
			w.t.Errorf("%d calls for %d machines: %v", total, many, w.Gate.AllCalls("autoscaling"))
		}
		for _, f := range w.firings("lifeboat-launch") {
			if f != answered {
				w.t.Fatalf("a hook ended by %s", f)
			}
		}
	})
}
