package boottest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/bootagent"
)

// heartbeat is how often a kubelet reports.
const heartbeat = 10 * time.Second

// startKubelet starts the kubelet unless it runs. The caller holds the lock.
func (m *Machine) startKubelet() {
	if m.kubelet.runs || !m.on {
		return
	}
	m.kubelet.runs = true
	m.kubelet.start++
	m.note("kubelet starts")
	if state := m.State(); strings.HasPrefix(state, "Warmed:") {
		m.wrong = append(m.wrong, "the kubelet was started in the state "+state)
	}
	m.later(m.host.RegisterFor, m.register)
}

// later does something after a time, if the kubelet has run until then. The caller holds the
// lock.
func (m *Machine) later(d time.Duration, do func()) {
	start := m.kubelet.start
	time.AfterFunc(d, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.kubelet.runs && m.kubelet.start == start {
			do()
		}
	})
}

// register registers the node, or takes over an existing one, as kubelets do. The caller holds
// the lock.
func (m *Machine) register() {
	if m.cuts.Cluster || m.mute {
		m.later(time.Second, m.register)
		return
	}
	if m.node == nil {
		m.node = &Node{Name: "node-of-" + m.ID, UID: m.kubelet.start}
		m.note("node registers")
	}
	m.node.owned, m.node.beats = true, time.Time{}
	m.later(m.host.ReadyFor, m.ready)
}

// ready sets the node to Ready. The caller holds the lock.
func (m *Machine) ready() {
	if m.cuts.Cluster || m.mute || m.node == nil {
		m.later(time.Second, m.ready)
		return
	}
	m.node.Ready, m.node.Heartbeat, m.node.beats = true, time.Now(), time.Now()
	m.note("node is Ready")
}

// stopKubelet stops the kubelet and leaves the node as it is. The caller holds the lock.
func (m *Machine) stopKubelet() {
	if !m.kubelet.runs {
		return
	}
	m.kubelet.runs = false
	m.note("kubelet stops")
	if m.node != nil {
		m.beat()
		m.node.owned = false
	}
}

// beat updates the node's heartbeat. The caller holds the lock.
func (m *Machine) beat() {
	if m.node == nil || !m.node.owned || !m.node.Ready || m.node.beats.IsZero() {
		return
	}
	m.node.Heartbeat = m.node.beats.Add(time.Since(m.node.beats).Truncate(heartbeat))
}

// readNode reads the node for the agent.
func (l *process) readNode(context.Context, string, string) bootagent.Node {
	m := l.m
	var out bootagent.Node
	err := l.reach(func(c Cuts) bool { return c.Cluster })(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.beat()
		if m.node != nil {
			out = bootagent.Node{Name: m.node.Name, Ready: m.node.Ready, Heartbeat: m.node.Heartbeat.Truncate(time.Second)}
		}
		return nil
	})
	if err != nil {
		return bootagent.Node{Trouble: err.Error()}
	}
	return out
}

// Node returns the machine's node, and whether there is one.
func (m *Machine) Node() (Node, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beat()
	if m.node == nil {
		return Node{}, false
	}
	return *m.node, true
}

// DeleteNode deletes the node, as after a drain. The kubelet does not register again before it
// is restarted.
func (m *Machine) DeleteNode() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node = nil
	m.note("node deleted")
}

// StartKubelet starts the kubelet without the agent, as a person does, or a reboot of a machine
// whose kubelet is enabled.
func (m *Machine) StartKubelet() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.startKubelet()
}

// HoldKubelet disconnects only the kubelet from the API server.
func (m *Machine) HoldKubelet(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute = on
}

// KubeletRuns reports whether the kubelet runs.
func (m *Machine) KubeletRuns() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kubelet.runs
}

// State is the lifecycle state of the instance; empty: it is in no group.
func (m *Machine) State() string {
	member, _ := m.region.States.AutoScaling.Member(m.ID)
	return string(member.State)
}

// Status is the agent's last status.
func (m *Machine) Status() bootagent.Status {
	data, _ := m.disk.Read(bootagent.StatusFile)
	s, _ := bootagent.ReadStatus(data) // an unwritten status is empty
	return s
}

// LoseState empties the agent's state directory.
func (m *Machine) LoseState() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk = &Memory{}
}

// Note adds an entry to the machine's log.
func (m *Machine) Note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(what)
}

func (m *Machine) note(what string) { m.log = append(m.log, Entry{time.Now(), what}) }

// Log is the machine's log.
func (m *Machine) Log() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// Happened is how many entries of the log contain a text.
func (m *Machine) Happened(what string) int {
	n := 0
	for _, e := range m.Log() {
		if strings.Contains(e.What, what) {
			n++
		}
	}
	return n
}

// When is when an entry of the log last contained a text; zero: never.
func (m *Machine) When(what string) time.Time {
	var at time.Time
	for _, e := range m.Log() {
		if strings.Contains(e.What, what) {
			at = e.At
		}
	}
	return at
}

// Wrong lists violations of invariants.
func (m *Machine) Wrong() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.wrong)
}

// History formats the log for people, with times since the first entry.
func (m *Machine) History() string {
	var b strings.Builder
	log := m.Log()
	for _, e := range log {
		fmt.Fprintf(&b, "%8s %s\n", e.At.Sub(log[0].At).Round(time.Millisecond), e.What)
	}
	return b.String()
}
