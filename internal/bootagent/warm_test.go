package bootagent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

// intoPool waits until the only machine of a group is warm.
func (w *world) intoPool() *boottest.Machine {
	w.t.Helper()
	m := w.only()
	w.until(10*time.Minute, "it is warm", func() bool {
		return strings.HasPrefix(m.State(), "Warmed:") && !strings.Contains(m.State(), "Pending")
	})
	if n := m.Happened("kubelet starts"); n != 0 {
		w.t.Errorf("the kubelet was started %d times while the machine warmed:\n%s", n, m.History())
	}
	return m
}

func TestRace06TheHookFiresTwice(t *testing.T) {
	t.Parallel()
	run(t, pooled(autoscaling.WarmedStopped), warming(), func(w *world) {
		m := w.intoPool()
		if m.Happened("ran ctr -n k8s.io images pull") != 3 || m.Happened("ran set-up") != 1 {
			w.t.Errorf("while it warmed:\n%s", m.History())
		}
		pass(time.Hour)
		w.scale(1)
		took := w.comesTo(m, "InService", 5*time.Minute)
		w.serves(m)
		pass(20 * time.Minute) // longer than the hook's timeout
		w.serves(m)
		w.expectFirings("lifeboat-launch", answered, answered)
		if m.Happened("run ") != 4 {
			w.t.Errorf("what was prepared was prepared again:\n%s", m.History())
		}
		if took > time.Minute {
			w.t.Errorf("from the pool into service took %s", took)
		}
	})
}

// Without a hook the instance is stopped as soon as it runs, in the middle of its preparation.
func TestRace07StoppedMidBoot(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stopped without a hook", "rebooted", "killed"} {
		t.Run(kind, func(t *testing.T) {
			g := pooled(autoscaling.WarmedStopped)
			h := warming()
			h.RunFor = 2 * time.Minute
			if kind == "stopped without a hook" {
				g.Hooks, h.BootFor = nil, time.Millisecond
			}
			run(t, g, h, func(w *world) {
				m := w.only()
				w.until(5*time.Minute, "set-up has begun", func() bool { return m.Happened("run set-up") == 1 })
				switch kind {
				case "rebooted":
					if err := w.States.EC2.Reboot([]string{m.ID}); err != nil {
						w.t.Fatal(err)
					}
				case "killed":
					m.Kill()
				default:
					w.comesTo(m, "Warmed:Stopped", time.Minute)
					w.scale(1)
				}
				if kind != "stopped without a hook" {
					w.comesTo(m, "Warmed:Stopped", 20*time.Minute)
					w.scale(1)
				}
				w.comesTo(m, "InService", 10*time.Minute)
				w.until(10*time.Minute, "the kubelet runs", m.KubeletRuns)
				if history := m.History(); m.Happened("ran set-up") != 1 || strings.Index(history, "ran set-up") > strings.Index(history, "kubelet starts") {
					w.t.Errorf("set up whole before the kubelet starts? \n%s", history)
				}
			})
		})
	}
}

func TestRace08KubeletStartsWhileWarming(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{10 * time.Second, 30 * time.Second, 100 * time.Second} {
		h := warming()
		h.RunFor = time.Minute
		run(t, pooled(autoscaling.WarmedRunning), h, func(w *world) {
			w.allowed = true
			m := w.only()
			pass(at)
			m.StartKubelet()
			w.until(time.Minute, "the kubelet is stopped", func() bool { return !m.KubeletRuns() })
			w.comesTo(m, "Warmed:Running", 10*time.Minute)
			m.StartKubelet()
			w.until(time.Minute, "the kubelet is stopped once more", func() bool { return !m.KubeletRuns() })
			w.scale(1)
			w.comesTo(m, "InService", 5*time.Minute)
			w.serves(m)
		})
	}
}

func TestRace09WarmingSeenWhateverIsConfigured(t *testing.T) {
	t.Parallel()
	h := host() // no images, no preparation
	h.EnabledKubelet = true
	run(t, pooled(autoscaling.WarmedStopped), h, func(w *world) {
		m := w.intoPool()
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		w.serves(m)
	})
}

func TestRace11RebootWhileWarming(t *testing.T) {
	t.Parallel()
	for at := 6 * time.Second; at < 110*time.Second; at += 11 * time.Second {
		run(t, pooled(autoscaling.WarmedStopped), warming(), func(w *world) {
			m := w.only()
			pass(at)
			if err := w.States.EC2.Reboot([]string{m.ID}); err != nil {
				w.t.Fatal(err)
			}
			w.intoPool()
			w.expectFirings("lifeboat-launch", answered)
		})
	}
}

func TestRace12OutOfThePoolWithoutABoot(t *testing.T) {
	t.Parallel()
	for _, state := range []autoscaling.LifecycleState{autoscaling.WarmedRunning, autoscaling.WarmedHibernated} {
		t.Run(string(state), func(t *testing.T) {
			run(t, pooled(state), warming(), func(w *world) {
				m := w.intoPool()
				pass(3 * time.Hour)
				boots := m.Happened("power on")
				w.scale(1)
				took := w.comesTo(m, "InService", 5*time.Minute)
				w.serves(m)
				w.expectFirings("lifeboat-launch", answered, answered)
				if m.Happened("power on") != boots || took > time.Minute {
					w.t.Errorf("it came into service in %s:\n%s", took, m.History())
				}
				if hibernates := state == autoscaling.WarmedHibernated; w.hasLogged("was suspended, or the clock was set") != hibernates {
					w.t.Error("the suspension was noticed, or not noticed, wrongly")
				}
			})
		})
	}
}

// Reuse on scale-in: the pods leave while the kubelet runs, and no state of that life is left
// when the machine returns.
func TestRace17BackIntoThePool(t *testing.T) {
	t.Parallel()
	for _, state := range []autoscaling.LifecycleState{autoscaling.WarmedStopped, autoscaling.WarmedRunning} {
		for _, reboots := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reboots %t", state, reboots), func(t *testing.T) { backIntoThePool(t, state, reboots) })
		}
	}
}

func backIntoThePool(t *testing.T, state autoscaling.LifecycleState, reboots bool) {
	g := pooled(state)
	g.WarmPool.ReuseOnScaleIn = true
	h := warming()
	h.WipePaths = []string{"/var/lib/cni/networks"}
	run(t, g, h, func(w *world) {
		m := w.intoPool()
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		pass(time.Hour)
		before, _ := m.Node()
		w.scale(0)
		w.comesTo(m, "Warmed:Pending:Wait", time.Minute)
		pass(2 * time.Minute) // pods are being moved
		if !m.KubeletRuns() || m.Happened("remove") != 0 {
			w.t.Errorf("the kubelet did not wait for the pods:\n%s", m.History())
		}
		if reboots {
			if err := w.States.EC2.Reboot([]string{m.ID}); err != nil {
				w.t.Fatal(err)
			}
			w.until(time.Minute, "it is wiped", func() bool { return m.Happened("remove /var/lib/cni/networks") == 1 })
			m.DeleteNode()
			w.completeAs(m, "lifeboat-terminate") // as the controller does
		} else {
			m.DeleteNode()
		}
		w.comesTo(m, string(state), 5*time.Minute)
		w.expectFirings("lifeboat-terminate", answered)
		if m.KubeletRuns() || m.Happened("remove /var/lib/cni/networks") != 1 {
			w.t.Errorf("back in the pool:\n%s", m.History())
		}
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		w.serves(m)
		if after, _ := m.Node(); after.UID == before.UID {
			w.t.Error("the node is from the previous life")
		}
		if got := m.Happened("run ctr"); got != 3 {
			w.t.Errorf("images were pulled %d times", got)
		}
		pass(20 * time.Minute)
		w.serves(m)
	})
}

// completeAs completes a hook that holds the machine, as the controller does.
func (w *world) completeAs(m *boottest.Machine, hook string) {
	w.t.Helper()
	for _, a := range w.as.Actions(m.ID) {
		if a.Hook == hook {
			if err := w.as.Complete(a.Ref, autoscaling.Continue); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.fail("%s does not hold %s", hook, m.ID)
}

func TestRace25InstancesOlderThanTheHook(t *testing.T) {
	t.Parallel()
	g := pooled(autoscaling.WarmedRunning)
	g.Hooks = nil
	run(t, g, warming(), func(w *world) {
		m := w.only()
		w.comesTo(m, "Warmed:Running", 5*time.Minute)
		pass(10 * time.Minute)
		h := launchHook()
		h.Group, h.Name = "g", "lifeboat-launch-2"
		if err := w.as.PutHook(h); err != nil {
			w.t.Fatal(err)
		}
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		w.expectFirings("lifeboat-launch-2", answered)
	})
}

// The previous life did not end in order: its node still exists and is still Ready, and the
// kubelet takes it over.
func TestRace30TheSameInstanceAgain(t *testing.T) {
	t.Parallel()
	g := pooled(autoscaling.WarmedStopped)
	g.WarmPool.ReuseOnScaleIn = true
	h := warming()
	h.ReadyFor, h.WipePaths = 4*time.Minute, []string{"/var/lib/cni/networks"}
	run(t, g, h, func(w *world) {
		m := w.intoPool()
		w.scale(1)
		w.comesTo(m, "InService", 10*time.Minute)
		w.scale(0)
		w.comesTo(m, "Warmed:Pending:Wait", time.Minute)
		w.completeAs(m, "lifeboat-terminate") // at once: nothing was drained
		w.comesTo(m, "Warmed:Stopped", time.Minute)
		if node, ok := m.Node(); !ok || !node.Ready {
			w.t.Fatalf("the node is %+v, there: %t", node, ok)
		}
		w.scale(1)
		w.comesTo(m, "Pending:Wait", time.Minute)
		took := w.comesTo(m, "InService", 10*time.Minute)
		w.serves(m)
		if took < 4*time.Minute {
			w.t.Errorf("answered after %s, with a state from an earlier life", took)
		}
		if history := m.History(); m.Happened("remove /var/lib/cni/networks") != 1 || strings.LastIndex(history, "remove") > strings.LastIndex(history, "kubelet starts") {
			w.t.Errorf("not wiped before the next life:\n%s", history)
		}
	})
}
