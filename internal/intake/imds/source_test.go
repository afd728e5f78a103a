package imds_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	awsimds "github.com/lifeboat-dev/lifeboat/emulator/imds"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func (m *machine) interrupt(o ec2.InterruptOptions) {
	m.t.Helper()
	if err := m.emu.States.EC2.Interrupt([]string{m.id}, o); err != nil {
		m.t.Fatal(err)
	}
}

func TestSpotInterruptionHasExactTime(t *testing.T) {
	for _, behaviour := range []ec2.Behaviour{ec2.Terminate, ec2.Stop} {
		t.Run(string(behaviour), func(t *testing.T) {
			m := newMachine(t)
			source, _ := m.start()
			m.untilReady(source)
			m.interrupt(ec2.InterruptOptions{Behaviour: behaviour, Notice: time.Minute, Rebalance: true})
			m.untilWritten(2)
			in, _ := m.emu.States.EC2.Instance(m.id)
			for _, n := range m.Written(m.id) {
				if n.Kind != notice.KindSpotInterruption {
					continue
				}
				if n.InstanceAction != string(behaviour) || n.Deadline == nil {
					t.Errorf("on record: %+v", n)
				}
				if diff := cmp.Diff(in.Notice.Deadline.UTC().Truncate(time.Second), n.Deadline.UTC()); diff != "" {
					t.Errorf("deadline (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestOneWriteForANoticeAndNoCallForRepeats(t *testing.T) {
	m := newMachine(t)
	metadata := &counted{Metadata: client(m.url)}
	source, stop := m.run(metadata, m.id)
	m.untilReady(source)
	m.looks(metadata, 20)
	m.Spent()
	m.looks(metadata, 50)
	if reads, writes := m.Spent(); reads+writes != 0 {
		t.Errorf("%d reads and %d writes while there is nothing to say", reads, writes)
	}
	m.interrupt(ec2.InterruptOptions{Notice: time.Minute})
	m.untilWritten(1)
	m.looks(metadata, 50)
	if _, writes := m.Spent(); writes != 1 {
		t.Errorf("%d writes for a notice", writes)
	}
	stop()
	source, _ = m.run(metadata, m.id)
	m.untilReady(source)
	m.looks(metadata, 50)
	if _, writes := m.Spent(); writes != 0 {
		t.Errorf("%d writes after a restart", writes)
	}
}

func TestScheduledEventsComeAndGo(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		for _, completed := range []bool{false, true} {
			t.Run(fmt.Sprintf("completed %t, restarts %t", completed, restarts), func(t *testing.T) { comeAndGo(t, completed, restarts) })
		}
	}
}

func comeAndGo(t *testing.T, completed, restarts bool) {
	m := newMachine(t)
	source, stop := m.start()
	m.untilReady(source)
	due := time.Now().Add(12 * 24 * time.Hour).UTC().Truncate(time.Second)
	event := ec2.Maintenance{Code: "instance-stop", Description: "degraded hardware", NotBefore: due, NotAfter: due.Add(time.Hour)}
	id, err := m.emu.States.EC2.ScheduleMaintenance(m.id, event)
	if err != nil {
		t.Fatal(err)
	}
	m.untilWritten(1)
	n := m.Written(m.id)[0]
	if n.Subject != id || n.InstanceAction != notice.ActionStop || n.Deadline == nil ||
		!n.Deadline.Time.Equal(due) || n.Withdrawn || n.EventTypeCode != "instance-stop" {
		t.Errorf("on record: %+v", n)
	}
	event.ID, event.NotBefore = id, due.Add(24*time.Hour)
	if _, err := m.emu.States.EC2.ScheduleMaintenance(m.id, event); err != nil {
		t.Fatal(err)
	}
	m.Until("the new date is on record", func() bool { return m.Written(m.id)[0].Deadline.Time.Equal(event.NotBefore) })
	if restarts {
		stop()
	}
	if err := m.emu.States.EC2.EndMaintenance(m.id, id, completed); err != nil {
		t.Fatal(err)
	}
	if restarts {
		m.start()
	}
	m.Until("it is taken back", func() bool { return m.Written(m.id)[0].Withdrawn })
	if got := m.Written(m.id); len(got) != 1 {
		t.Errorf("on record: %v", got)
	}
}

func TestPastEventIsNotRecorded(t *testing.T) {
	m := newMachine(t)
	id, err := m.emu.States.EC2.ScheduleMaintenance(m.id, ec2.Maintenance{Code: "system-reboot", NotBefore: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.emu.States.EC2.EndMaintenance(m.id, id, true); err != nil {
		t.Fatal(err)
	}
	metadata := &counted{Metadata: client(m.url)}
	source, _ := m.run(metadata, m.id)
	m.untilReady(source)
	m.looks(metadata, 50)
	if got := m.Written(m.id); got != nil {
		t.Errorf("on record: %v", got)
	}
}

func TestAutoScaling(t *testing.T) {
	m := newMachine(t)
	group := m.emu.States.AutoScaling
	if err := group.CreateGroup(autoscaling.Group{Name: "workers", Max: 9}); err != nil {
		t.Fatal(err)
	}
	put := func(state autoscaling.LifecycleState) {
		t.Helper()
		if err := group.Attach("workers", m.id, state); err != nil {
			t.Fatal(err)
		}
	}
	put(autoscaling.InService)
	metadata := &counted{Metadata: client(m.url)}
	source, _ := m.run(metadata, m.id)
	m.untilReady(source)
	for _, lives := range []autoscaling.LifecycleState{"Standby", "Warmed:Stopped", "Detached"} {
		put(lives)
		m.looks(metadata, 10)
	}
	if got := m.Written(m.id); got != nil {
		t.Errorf("on record while it lives: %v", got)
	}
	put("Terminating:Wait")
	m.untilWritten(1)
	n := m.Written(m.id)[0]
	if n.Kind != notice.KindAutoScalingTermination || n.Deadline != nil || n.Withdrawn {
		t.Errorf("on record: %+v", n)
	}
	put(autoscaling.InService)
	m.Until("it is taken back", func() bool { return m.Written(m.id)[0].Withdrawn })
	put("Terminating:Wait")
	m.Until("it is on record again", func() bool { return !m.Written(m.id)[0].Withdrawn })
}

func TestAPIServerOutage(t *testing.T) {
	m := newMachine(t)
	m.Away(true)
	metadata := &counted{Metadata: client(m.url)}
	source, _ := m.run(metadata, m.id)
	m.interrupt(ec2.InterruptOptions{Notice: time.Minute})
	m.Until("it says so", func() bool { return m.Said("cannot write the node's notices, retrying", "connection refused") == 1 })
	m.looks(metadata, 20)
	if source.Ready() == nil {
		t.Error("ready without the API server")
	}
	m.set(awsimds.Settings{Off: true}) // it responded before
	m.Until("metadata is off", func() bool { return m.Said("cannot read instance metadata") == 1 })
	m.Away(false)
	m.untilWritten(1)
}

func TestTroubles(t *testing.T) {
	tests := []struct {
		name     string
		settings awsimds.Settings
		says     []string
	}{
		{"switched off", awsimds.Settings{Off: true}, []string{`"reason"="off"`, "modify-instance-metadata-options --instance-id i-", "--http-endpoint enabled"}},
		{"the hop limit", awsimds.Settings{DropTokens: true}, []string{`"reason"="hopLimit"`, "--http-put-response-hop-limit 2", "hostNetwork: true"}},
		{"throttled", awsimds.Settings{Throttled: true}, []string{`"reason"="throttled"`, "polls less often"}},
	}
	for _, test := range tests {
		for _, fromTheStart := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, from the start: %t", test.name, fromTheStart), func(t *testing.T) {
				m := newMachine(t)
				if fromTheStart {
					m.set(test.settings)
				}
				source, _ := m.start()
				if !fromTheStart {
					m.untilReady(source)
					m.set(test.settings)
					m.emu.States.IMDS.ExpireTokens(m.id)
				}
				m.Until("it says so", func() bool {
					return m.Said(append(test.says, "cannot read instance metadata, retrying")...) == 1
				})
				if source.Ready() == nil {
					t.Error("ready without metadata")
				}
				m.interrupt(ec2.InterruptOptions{Notice: time.Minute})
				m.set(awsimds.Settings{})
				m.untilWritten(1)
				m.untilReady(source)
				if got := m.Said("cannot read instance metadata"); got > 2 {
					t.Errorf("it logged that %d times:\n%s", got, m.Log())
				}
			})
		}
	}
}

func TestTokensExpireEarly(t *testing.T) {
	m := newMachine(t)
	m.set(awsimds.Settings{MaxTokenAge: 20 * time.Millisecond})
	metadata := &counted{Metadata: client(m.url)}
	source, _ := m.run(metadata, m.id)
	m.untilReady(source)
	for range 5 {
		m.looks(metadata, 20)
		m.emu.States.IMDS.ExpireTokens(m.id)
	}
	m.interrupt(ec2.InterruptOptions{Notice: time.Minute})
	m.untilWritten(1)
	if m.Said("could not read") != 0 {
		t.Errorf("tokens were not renewed:\n%s", m.Log())
	}
}

func TestMetadataOfOtherInstance(t *testing.T) {
	m := newMachine(t)
	mine := "i-0bbbbbbbbbbbbbbbb"
	m.AddNode(mine)
	// The other instance has a record, which must not be changed by mistake.
	_, stop := m.start()
	m.interrupt(ec2.InterruptOptions{Notice: time.Minute})
	m.untilWritten(1)
	stop()
	m.Spent()
	metadata := &counted{Metadata: client(m.url)}
	source, _ := m.run(metadata, mine)
	if _, err := m.emu.States.EC2.ScheduleMaintenance(m.id, ec2.Maintenance{Code: "system-reboot", NotBefore: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	m.Until("it says so", func() bool {
		return m.Said("instance metadata belongs to "+m.id+", but this node is "+mine+": Lifeboat records nothing", "kube2iam") == 1
	})
	m.looks(metadata, 50)
	if _, writes := m.Spent(); writes != 0 || source.Ready() == nil {
		t.Errorf("%d writes, ready: %v", writes, source.Ready())
	}
	if got := m.Written(m.id); len(got) != 1 || m.Written(mine) != nil {
		t.Errorf("on record of the other: %v, of this: %v", got, m.Written(mine))
	}
}

func TestNoSuchPlace(t *testing.T) {
	m := &machine{World: polltest.New(t), t: t, id: "i-0bbbbbbbbbbbbbbbb", url: "http://127.0.0.1:1"}
	m.AddNode(m.id)
	source, _ := m.start()
	m.Until("it says so", func() bool { return m.Said(`"reason"="unreachable"`, "check that this node is an EC2 instance") == 1 })
	if source.Ready() == nil {
		t.Error("ready without metadata")
	}
}
