package bootagent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

// There is no controller in any test of this package. In this test each dependency is
// unreachable for nearly as long as the hook's timeout.
func TestRace32ControllerIsAway(t *testing.T) {
	t.Parallel()
	for name, cuts := range map[string]boottest.Cuts{
		"AWS": {AWS: true}, "metadata": {Metadata: true}, "the API server": {Cluster: true},
		"all of them": {AWS: true, Metadata: true, Cluster: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []time.Duration{time.Second, 16 * time.Second, 32 * time.Second} {
				run(t, cold(1), host(), func(w *world) {
					m := w.only()
					w.comesTo(m, "Pending:Wait", time.Minute)
					pass(from)
					m.Cut(cuts)
					if m.State() != "Pending:Wait" {
						w.t.Fatalf("after %s the hook was answered: the outage must begin before", from)
					}
					pass(10*time.Minute - from - 70*time.Second)
					m.Cut(boottest.Cuts{})
					w.comesTo(m, "InService", 2*time.Minute)
					w.serves(m)
					w.expectFirings("lifeboat-launch", answered)
				})
			}
		})
	}
	t.Run("AWS, for longer than the hook waits", func(t *testing.T) {
		run(t, cold(1), host(), func(w *world) {
			m := w.only()
			m.Cut(boottest.Cuts{AWS: true})
			w.until(15*time.Minute, "the hook's time is out", func() bool { return m.State() == "" || strings.Contains(m.State(), "Terminat") })
			if got := w.firings("lifeboat-launch")[0]; got != "timeout ABANDON" {
				w.t.Errorf("it ended by %s", got)
			}
		})
	})
}

func TestAutoScalingMisbehaves(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(w *world){
		"is not available": func(w *world) { w.Gate.Fail("autoscaling", "*") },
		"does not answer":  func(w *world) { w.Gate.Hang("autoscaling", "*") },
		"throttles":        func(w *world) { w.Gate.Throttle("autoscaling", "*", -1) },
		"is in contention": func(w *world) { w.as.Contend(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, cold(1), host(), func(w *world) {
				way(w)
				m := w.only()
				w.until(2*time.Minute, "its node is Ready", func() bool { n, _ := m.Node(); return n.Ready })
				pass(7 * time.Minute)
				if m.State() != "Pending:Wait" {
					w.t.Errorf("it is %s", m.State())
				}
				w.Gate.LiftAll()
				w.as.Contend(0)
				w.comesTo(m, "InService", 90*time.Second)
				w.expectFirings("lifeboat-launch", answered)
			})
		})
	}
}

func TestRace33AnotherAnswersForIt(t *testing.T) {
	t.Parallel()
	t.Run("without the permission", func(t *testing.T) {
		run(t, cold(1), host(), func(w *world) {
			w.Gate.Deny("autoscaling", "CompleteLifecycleAction")
			m := w.only()
			w.until(5*time.Minute, "it was refused", func() bool { return w.calls("CompleteLifecycleAction") > 0 })
			pass(8 * time.Minute)
			if n := w.calls("CompleteLifecycleAction"); n > 3 {
				w.t.Errorf("tried %d times in eight minutes", n)
			}
			status := m.Status()
			if !strings.Contains(status.Reason, "the controller answers in its place") || !strings.Contains(status.Denied, "allow autoscaling:CompleteLifecycleAction") {
				w.t.Errorf("status %+v", status)
			}
			w.completeAs(m, "lifeboat-launch")
			pass(10 * time.Minute)
			w.serves(m)
			if status := m.Status(); !strings.Contains(status.Reason, "nothing holds the machine") {
				w.t.Errorf("status %+v", status)
			}
		})
	})
	t.Run("without any permission", func(t *testing.T) {
		run(t, pooled(autoscaling.WarmedStopped), warming(), func(w *world) {
			w.Gate.Deny("autoscaling", "*")
			m := w.only()
			w.until(10*time.Minute, "it is prepared", func() bool { return m.Happened("ran ") == 4 })
			pass(time.Minute)
			w.completeAs(m, "lifeboat-launch")
			w.comesTo(m, "Warmed:Stopped", time.Minute)
			w.scale(1)
			w.until(5*time.Minute, "its node is Ready", func() bool { n, _ := m.Node(); return n.Ready })
			w.completeAs(m, "lifeboat-launch")
			w.comesTo(m, "InService", time.Minute)
			w.serves(m)
		})
	})
	t.Run("configured not to", func(t *testing.T) {
		h := host()
		h.NoAnswer = true
		run(t, cold(1), h, func(w *world) {
			m := w.only()
			w.until(5*time.Minute, "its node is Ready", func() bool { n, _ := m.Node(); return n.Ready })
			pass(2 * time.Minute)
			if len(w.Gate.AllCalls("autoscaling")) != 0 || !strings.Contains(m.Status().Reason, "the controller answers") {
				w.t.Errorf("calls %v, says %+v", w.Gate.AllCalls("autoscaling"), m.Status())
			}
			w.completeAs(m, "lifeboat-launch")
			pass(time.Minute)
			w.serves(m)
		})
	})
}
