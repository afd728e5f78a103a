package bootagent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/imds"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

func TestRace01InstancesBeforeTheHook(t *testing.T) {
	t.Parallel()
	g := cold(1)
	g.Hooks = nil
	run(t, g, host(), func(w *world) {
		m := w.only()
		w.comesTo(m, "InService", time.Minute)
		for _, h := range []autoscaling.Hook{launchHook(), terminateHook()} {
			h.Group = "g"
			if err := w.as.PutHook(h); err != nil {
				w.t.Fatal(err)
			}
		}
		w.until(5*time.Minute, "the node is Ready", func() bool { n, _ := m.Node(); return n.Ready })
		pass(time.Hour)
		w.serves(m)
		if w.calls("CompleteLifecycleAction") != 0 || w.calls("DescribeAutoScalingInstances") > 3 {
			w.t.Errorf("calls: %v", w.Gate.AllCalls("autoscaling"))
		}
	})
}

func TestRace03DoneBeforeTheWait(t *testing.T) {
	t.Parallel()
	run(t, cold(0), host(), func(w *world) {
		w.as.SetTiming(autoscaling.Timing{Launch: 3 * time.Minute})
		w.scale(1)
		m := w.only()
		w.until(2*time.Minute, "the node is Ready", func() bool { n, _ := m.Node(); return n.Ready })
		if m.State() != "Pending" {
			w.t.Fatalf("it is %s, want Pending", m.State())
		}
		w.comesTo(m, "Pending:Wait", 3*time.Minute)
		if n := w.calls("CompleteLifecycleAction"); n != 0 {
			w.t.Errorf("answered %d times before the wait", n)
		}
		if took := w.comesTo(m, "InService", 2*time.Minute); took > 40*time.Second {
			w.t.Errorf("answered %s after it could be", took)
		}
		w.expectFirings("lifeboat-launch", answered)
	})
}

func TestRace04WaitButNoAction(t *testing.T) {
	t.Parallel()
	run(t, cold(0), host(), func(w *world) {
		w.as.SetConsistency(autoscaling.Consistency{ActionAfter: 3 * time.Minute, Lag: 3 * time.Second})
		w.scale(1)
		m := w.only()
		w.comesTo(m, "InService", 5*time.Minute)
		w.expectFirings("lifeboat-launch", answered)
		if n := w.calls("CompleteLifecycleAction"); n < 3 || n > 12 {
			w.t.Errorf("answered %d times in three minutes", n)
		}
	})
}

// Metadata gets the target late: until then it is unknown, and the gate stays closed.
func TestRace10MetadataSaysNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{time.Minute, 5 * time.Minute} {
		for _, pool := range []bool{true, false} {
			t.Run(fmt.Sprintf("for %s, pool %t", after, pool), func(t *testing.T) {
				g := cold(0)
				if pool {
					g = pooled(autoscaling.WarmedStopped)
					g.Max = 0
				}
				run(t, g, host(), func(w *world) {
					w.as.SetConsistency(autoscaling.Consistency{TargetAfter: after, Lag: 5 * time.Second})
					if !pool {
						w.scale(1)
						m := w.only()
						w.comesTo(m, "InService", 10*time.Minute)
						w.serves(m)
						return
					}
					if err := w.as.PutPool("g", autoscaling.WarmPool{MinSize: 1}); err != nil {
						w.t.Fatal(err)
					}
					w.intoPool()
				})
			})
		}
	}
}

// alone is a machine of an instance without a group.
func (w *world) alone() *boottest.Machine {
	w.t.Helper()
	if _, err := w.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1, Tags: map[string]string{"Name": "alone"}}); err != nil {
		w.t.Fatal(err)
	}
	return w.only()
}

func TestInstanceWithoutGroup(t *testing.T) {
	t.Parallel()
	run(t, cold(0), host(), func(w *world) { // as Auto Scaling says
		m := w.alone()
		pass(2 * time.Minute)
		if m.KubeletRuns() {
			w.t.Error("it did not ask for long enough")
		}
		w.until(2*time.Minute, "the kubelet runs", m.KubeletRuns)
		pass(time.Hour)
		if n := w.calls("DescribeAutoScalingInstances"); n != 1 {
			w.t.Errorf("asked %d times", n)
		}
		if err := w.States.EC2.Reboot([]string{m.ID}); err != nil {
			w.t.Fatal(err)
		}
		pass(time.Second)
		if took := w.until(time.Minute, "the kubelet runs again", m.KubeletRuns); took > 30*time.Second {
			w.t.Errorf("after a reboot it took %s", took)
		}
	})
	run(t, cold(0), host(), func(w *world) { // as its tags say
		w.Gate.Deny("autoscaling", "*")
		m := w.alone()
		w.States.IMDS.Set(m.ID, imds.Settings{Tags: true})
		w.until(5*time.Minute, "the kubelet runs", m.KubeletRuns)
		if n := w.calls("DescribeAutoScalingInstances"); n != 0 {
			w.t.Errorf("asked Auto Scaling %d times", n)
		}
	})
	run(t, cold(0), host(), func(w *world) { // no source answers
		w.Gate.Deny("autoscaling", "*")
		m := w.alone()
		pass(time.Hour)
		if m.KubeletRuns() || !strings.Contains(m.Status().Reason, "allow autoscaling:DescribeAutoScalingInstances") {
			w.t.Errorf("unknown means join: %+v", m.Status())
		}
	})
	run(t, cold(1), host(), func(w *world) { // its tags say that it is in a group, and metadata has no target
		w.as.SetConsistency(autoscaling.Consistency{TargetAfter: 30 * time.Minute})
		w.Gate.Deny("autoscaling", "*")
		m := w.only()
		w.States.IMDS.Set(m.ID, imds.Settings{Tags: true})
		pass(9 * time.Minute)
		if m.KubeletRuns() {
			w.t.Error("unknown means join")
		}
	})
}

func TestRace14ServingWhileTheHookWaits(t *testing.T) {
	t.Parallel()
	h := host()
	h.ReadyFor = 3 * time.Minute
	run(t, cold(1), h, func(w *world) {
		m := w.only()
		w.comesTo(m, "InService", 5*time.Minute)
		w.serves(m)
		took := w.entered(m, "Pending:Proceed").Sub(m.When("node is Ready"))
		if took < 0 || took > 15*time.Second {
			w.t.Errorf("answered %s after the node was Ready", took)
		}
	})
}

func TestDeletedNodeIsNotReady(t *testing.T) {
	t.Parallel()
	run(t, cold(1), host(), func(w *world) {
		m := w.only()
		m.Cut(boottest.Cuts{AWS: true})
		w.until(2*time.Minute, "the node is Ready", func() bool { n, _ := m.Node(); return n.Ready })
		pass(10 * time.Second) // the agent has seen it
		m.DeleteNode()
		m.Cut(boottest.Cuts{})
		pass(5 * time.Minute)
		if m.State() != "Pending:Wait" || !strings.Contains(m.Status().Reason, "has not registered its node") {
			w.t.Errorf("it is %s, and says %+v", m.State(), m.Status())
		}
	})
}

func TestRace20ReadinessAskedOnceMore(t *testing.T) {
	t.Parallel()
	h := host()
	h.ReadyFor = 9 * time.Minute
	run(t, cold(1), h, func(w *world) {
		m := w.only()
		w.comesTo(m, "InService", 11*time.Minute)
		w.serves(m)
		w.expectFirings("lifeboat-launch", answered)
	})
}

func TestRace16TakenBackWhileJoining(t *testing.T) {
	t.Parallel()
	early := 0
	for at := 2 * time.Second; at < 90*time.Second; at += 9 * time.Second {
		h := host()
		h.ReadyFor = time.Hour
		run(t, cold(1), h, func(w *world) {
			m := w.only()
			pass(at)
			started := m.Happened("kubelet starts")
			if _, err := w.as.TerminateMember([]string{m.ID}, true); err != nil {
				w.t.Fatalf("%s after its launch: %v", at, err)
			}
			pass(12 * time.Second) // longer than the interval of metadata reads
			known := time.Now()
			beats := w.calls("RecordLifecycleActionHeartbeat")
			pass(3 * time.Minute)
			if w.calls("RecordLifecycleActionHeartbeat") != beats || w.calls("CompleteLifecycleAction") != 0 {
				w.t.Errorf("goes on with a machine that leaves: %v", w.Gate.AllCalls("autoscaling"))
			}
			if started == 0 {
				early++
			}
			if started == 0 && m.When("kubelet starts").After(known) {
				w.t.Errorf("terminated %s after its launch, but it joined:\n%s", at, m.History())
			}
		})
	}
	if early == 0 {
		t.Error("the instance was never terminated before its kubelet started")
	}
	run(t, pooled(autoscaling.WarmedStopped), warming(), func(w *world) {
		m := w.only()
		w.until(time.Minute, "it prepares", func() bool { return m.Happened("run set-up") == 1 })
		if err := w.as.DeletePool("g", true); err != nil {
			w.t.Fatal(err)
		}
		pass(10 * time.Minute)
		if m.Happened("kubelet starts") != 0 || m.Happened("ran ctr") != 0 || w.calls("CompleteLifecycleAction") != 0 {
			w.t.Errorf("goes on while its pool is deleted:\n%s", m.History())
		}
	})
}

func TestRace31ReadyFromAnEarlierLife(t *testing.T) {
	t.Parallel()
	g := pooled(autoscaling.WarmedStopped)
	g.WarmPool.ReuseOnScaleIn = true
	run(t, g, host(), func(w *world) {
		m := w.intoPool()
		w.scale(1)
		w.comesTo(m, "InService", 5*time.Minute)
		w.scale(0)
		w.comesTo(m, "Warmed:Pending:Wait", time.Minute)
		w.completeAs(m, "lifeboat-terminate")
		w.comesTo(m, "Warmed:Stopped", time.Minute)
		// Only the kubelet cannot reach the API server: its node does not change.
		m.HoldKubelet(true)
		w.scale(1)
		w.comesTo(m, "Pending:Wait", time.Minute)
		pass(8 * time.Minute)
		if node, ok := m.Node(); !ok || !node.Ready || m.State() != "Pending:Wait" {
			w.t.Errorf("the node is %+v, and the machine %s", node, m.State())
		}
		if w.calls("CompleteLifecycleAction") != 2 {
			w.t.Errorf("answered with a state from an earlier life: %v", w.firings("lifeboat-launch"))
		}
		m.HoldKubelet(false)
		w.comesTo(m, "InService", time.Minute)
	})
}
