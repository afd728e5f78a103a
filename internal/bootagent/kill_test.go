package bootagent_test

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

// The agent is killed before each of its effects on the way into the pool, out of it, and back.
func TestAgentKilledAtAnyCall(t *testing.T) {
	t.Parallel()
	g := pooled(autoscaling.WarmedRunning)
	g.WarmPool.ReuseOnScaleIn = true
	g.Hooks[0].Heartbeat, g.Hooks[1].Heartbeat = 3*time.Minute, 3*time.Minute
	h := warming()
	h.RunFor = 5 * time.Second
	h.WipePaths, h.BootFor = []string{"/var/lib/cni/networks"}, time.Second
	legs := []func(w *world, m *boottest.Machine, n int){
		func(w *world, m *boottest.Machine, n int) { m.KillAt(n); w.intoPool() },
		func(w *world, m *boottest.Machine, n int) {
			w.intoPool()
			m.KillAt(n)
			w.scale(1)
			w.comesTo(m, "InService", 5*time.Minute)
		},
		func(w *world, m *boottest.Machine, n int) {
			w.intoPool()
			w.scale(1)
			w.comesTo(m, "InService", 5*time.Minute)
			pass(time.Minute)
			m.KillAt(n)
			w.scale(0)
			pass(20 * time.Second)
			if !m.KubeletRuns() {
				w.t.Error("the kubelet did not wait for the pods")
			}
			m.DeleteNode()
			w.comesTo(m, "Warmed:Running", 5*time.Minute)
		},
	}
	for leg, walk := range legs {
		most := 0
		for n := 1; n <= max(10, most); n++ {
			run(t, g, h, func(w *world) {
				m := w.only()
				walk(w, m, n)
				most = max(most, m.Effects())
				w.scale(1)
				w.comesTo(m, "InService", 5*time.Minute)
				pass(4 * time.Minute)
				w.serves(m)
				for _, hook := range []string{"lifeboat-launch", "lifeboat-terminate"} {
					for _, f := range w.firings(hook) {
						if f != answered {
							w.t.Errorf("leg %d, killed at %d: a firing of %s ended by %s", leg, n, hook, f)
						}
					}
				}
				if leg == 2 && m.Happened("remove /var/lib/cni/networks") == 0 {
					w.t.Errorf("killed at %d: it was not wiped", n)
				}
			})
		}
		t.Logf("leg %d: killed at each of %d effects", leg, most)
		if most == 0 {
			t.Errorf("leg %d has no effect at which the agent could be killed", leg)
		}
	}
}

// The journal is lost while the machine serves; the open gate still shows that it serves.
func TestLostJournal(t *testing.T) {
	t.Parallel()
	g := pooled(autoscaling.WarmedRunning)
	g.WarmPool.ReuseOnScaleIn = true
	h := warming()
	h.WipePaths = []string{"/var/lib/cni/networks"}
	run(t, g, h, func(w *world) {
		m := w.intoPool()
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		pass(time.Minute)
		m.LoseState()
		m.Kill()
		w.scale(0)
		pass(2 * time.Minute)
		if !m.KubeletRuns() {
			w.t.Errorf("the kubelet did not wait for the pods:\n%s", m.History())
		}
		m.DeleteNode()
		w.completeAs(m, "lifeboat-terminate")
		w.until(2*time.Minute, "it is wiped", func() bool { return m.Happened("remove /var/lib/cni/networks") == 1 })
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		w.serves(m)
	})
}

// The kubelet takes over image pulls that are unfinished when the machine must serve.
func TestPullsEndWhenInstanceEntersService(t *testing.T) {
	t.Parallel()
	g := pooled(autoscaling.WarmedRunning)
	g.Hooks = nil
	h := warming()
	h.Prepare, h.RunFor = nil, 10*time.Minute
	run(t, g, h, func(w *world) {
		m := w.only()
		w.until(2*time.Minute, "it pulls", func() bool { return m.Happened("run ctr") == 2 })
		w.scale(1)
		w.until(time.Minute, "the kubelet runs", m.KubeletRuns)
		pass(30 * time.Minute)
		w.serves(m)
		if m.Happened("ran ctr") != 0 || m.Happened("run ctr") != 2 {
			w.t.Errorf("continues to pull:\n%s", m.History())
		}
	})
}
