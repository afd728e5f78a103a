//go:build e2e && linux

package systemd

import (
	"strconv"
	"strings"
	"testing"
)

// TestBootUnderSystemd follows one machine through its warm pool, a network restart and a reboot.
func TestBootUnderSystemd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config{warm: true})

	// No network: neither network-online.target nor the agent is there, and the kubelet waits.
	must(t, w.network.Plug(false))
	w.boot()
	w.until("nodeup waits for the kubelet", func() bool {
		job := w.property("kubelet.service", "Job")
		return job != "" && job != "0"
	})
	if got := w.property("lifeboat-boot.service", "ActiveState"); got != "inactive" {
		t.Errorf("without a network the agent is %s", got)
	}
	must(t, w.network.Plug(true))
	w.untilState("Warmed:Stopped")
	if n := w.starts(); n != 0 {
		t.Errorf("the kubelet was started %d times while the instance warmed", n)
	}
	if n := w.answers(); n != 1 {
		t.Errorf("%d answers for the pool, want 1", n)
	}
	must(t, w.machine.Cut())

	// Out of the pool. The network restarts while the agent waits for the node.
	w.scale()
	w.untilState("Pending:Wait")
	w.boot()
	w.until("the kubelet starts", func() bool { return w.starts() == 1 })
	w.checkOrder()
	must(t, w.network.Plug(false))
	w.run("systemctl", "restart", "systemd-networkd.service")
	w.until("the machine has no address", func() bool { return !strings.Contains(w.run("ip", "address", "show", "eth0"), "inet ") })
	must(t, w.network.Plug(true))
	w.setReady(true)
	w.untilState("InService")
	w.checkCounts(1, 2)

	// A reboot while it serves: the agent knows from its journal, and answers nothing.
	w.run("systemctl", "reboot")
	<-w.machine.Done()
	must(t, w.machine.Cut())
	w.boot()
	w.until("the kubelet starts again", func() bool { return w.starts() == 2 })
	w.until("the agent settles", w.settled)
	w.checkCounts(2, 2)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, entry := range w.journal {
		if strings.Contains(entry, "Warmed") {
			t.Error(entry)
		}
	}
}

// TestSuspendedUnderSystemd suspends the machine until its hook has ended without an answer.
func TestSuspendedUnderSystemd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config{timeout: 30}) // AWS' minimum
	w.boot()
	w.until("the kubelet starts", func() bool { return w.starts() == 1 })
	must(t, w.machine.Suspend(true))
	w.setReady(true)
	w.untilState("InService") // the hook's default result
	must(t, w.machine.Suspend(false))
	w.until("the agent settles", w.settled)
	w.checkCounts(1, 0)
}

// TestUnitsWithDefects removes lines of the units. The checks of the tests above must notice.
func TestUnitsWithDefects(t *testing.T) {
	t.Parallel()
	t.Run("no gate", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config{warm: true, flags: "--answer=false", units: map[string]func(string) string{
			"kubelet.service.d/05-lifeboat.conf": func(string) string { return "" },
		}})
		w.boot()
		w.until("the kubelet starts while the instance warms", func() bool {
			return w.starts() > 0 && strings.HasPrefix(w.state(), "Warmed:")
		})
	})
	t.Run("gate that requires systemd-networkd", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config{units: map[string]func(string) string{
			"lifeboat-gate.service": func(unit string) string {
				return strings.ReplaceAll(unit, "[Unit]", "[Unit]\nRequires=systemd-networkd.service\nAfter=systemd-networkd.service")
			},
		}})
		w.boot()
		w.until("the kubelet starts", func() bool { return w.starts() == 1 })
		w.run("systemctl", "restart", "--no-block", "systemd-networkd.service")
		w.until("the kubelet starts twice", func() bool { return w.starts() == 2 })
	})
	t.Run("no network-online", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config{warm: true, units: map[string]func(string) string{
			"lifeboat-boot.service": func(unit string) string { return strings.ReplaceAll(unit, "network-online.target", "") },
		}})
		must(t, w.network.Plug(false))
		w.boot()
		w.until("the agent starts without a network", func() bool { return w.property("lifeboat-boot.service", "ActiveState") == "active" })
	})
}

// property is a property of a unit; empty while systemd does not answer yet.
func (w *world) property(unit, name string) string {
	out, err := w.machine.Run(w.t.Context(), "systemctl", "show", "--value", "--property", name, unit)
	if err != nil {
		return ""
	}
	return out
}

// checkOrder compares the times at which systemd started units in this boot.
func (w *world) checkOrder() {
	w.t.Helper()
	last, before := int64(0), "the boot"
	for _, u := range []struct{ unit, property string }{
		{"network-online.target", "ActiveEnterTimestampMonotonic"}, {"lifeboat-boot.service", "ExecMainStartTimestampMonotonic"},
		{"lifeboat-gate.service", "ActiveEnterTimestampMonotonic"}, {"kubelet.service", "ExecMainStartTimestampMonotonic"},
	} {
		at, err := strconv.ParseInt(w.property(u.unit, u.property), 10, 64)
		if err != nil || at <= last {
			w.t.Errorf("%s started at %d µs (%v), not after %s at %d µs", u.unit, at, err, before, last)
		}
		last, before = at, u.unit
	}
}

func (w *world) checkCounts(starts, answers int) {
	w.t.Helper()
	if s, a := w.starts(), w.answers(); s != starts || a != answers {
		w.t.Errorf("%d starts of the kubelet and %d answers, want %d and %d", s, a, starts, answers)
	}
}

// settled reports whether the agent has nothing left to do.
func (w *world) settled() bool {
	out, err := w.machine.Run(w.t.Context(), "/usr/local/bin/lifeboatd", "agent", "boot", "--status")
	return err == nil && strings.Contains(out, "InService") && strings.Contains(out, "gate       open")
}
