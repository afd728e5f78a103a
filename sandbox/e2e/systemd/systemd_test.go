//go:build e2e && linux

package systemd

import (
	"fmt"
	"slices"
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
	w.reboot()
	w.until("the kubelet starts again", func() bool { return w.starts() == 2 })
	w.untilShown(2, 2, inService...)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, entry := range w.journal {
		if strings.Contains(entry, "Warmed") {
			t.Error(entry)
		}
	}
}

// TestRebootDuringBoot reboots a machine twice before it is in service: in its warm pool, after its answer and
// before the start of its kubelet, and again when its node is not Ready yet.
func TestRebootDuringBoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config{warm: true, running: true})
	w.boot()
	w.untilState("Warmed:Running")
	w.reboot()
	w.untilShown(0, 1, "gate       closed", "nothing holds the machine (state Warmed:Running)")

	w.scale()
	w.until("the kubelet starts", func() bool { return w.starts() == 1 })
	w.reboot()
	w.until("the kubelet starts again", func() bool { return w.starts() == 2 })
	w.untilShown(2, 1, waitsForNode...)
	w.setReady(true)
	w.untilState("InService")
	w.untilShown(2, 2, inService...)
}

// TestSuspendedUnderSystemd suspends the machine until its hook has ended without an answer. The clocks go
// on, so the agent does not notice that. It reads the state again before it answers.
func TestSuspendedUnderSystemd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config{timeout: 60}) // enough for a boot
	w.suspendBeyondHook()
	w.untilShown(1, 0, inService...)
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
		// The agent stops the kubelet, perhaps before it has recorded its start.
		w.until("systemd starts the kubelet while the instance warms", func() bool {
			at := w.property("kubelet.service", "ExecMainStartTimestampMonotonic")
			return at != "" && at != "0" && strings.HasPrefix(w.state(), "Warmed:")
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

// reboot restarts the machine from within.
func (w *world) reboot() {
	w.t.Helper()
	w.run("systemctl", "reboot")
	<-w.machine.Done()
	must(w.t, w.machine.Cut())
	w.boot()
}

// suspendBeyondHook boots, and suspends the machine from a moment in which the agent waits for its node, until the
// hook has ended with its default result. The node is Ready when the machine continues.
func (w *world) suspendBeyondHook() {
	w.t.Helper()
	w.boot()
	w.until("the kubelet starts", func() bool { return w.starts() == 1 })
	w.untilShown(1, 0, waitsForNode...)
	must(w.t, w.machine.Suspend(true))
	w.setReady(true)
	w.untilState("InService")
	must(w.t, w.machine.Suspend(false))
}

// What the agent's status shows when it waits for the node, and when it has nothing left to do.
var (
	waitsForNode = []string{"gate       open", "state      Pending:Wait"}
	inService    = []string{"gate       open", "nothing holds the machine (state InService)"}
)

// untilShown waits until the agent's status in this boot has all texts, and checks the counts. More answers end the
// wait.
func (w *world) untilShown(starts, answers int, texts ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("the agent shows %q", texts), func() bool {
		out, err := w.machine.Run(w.t.Context(), "/usr/local/bin/lifeboatd", "agent", "boot", "--status")
		missing := func(text string) bool { return !strings.Contains(out, text) }
		return w.answers() > answers || err == nil && !slices.ContainsFunc(texts, missing)
	})
	w.checkCounts(starts, answers)
}
