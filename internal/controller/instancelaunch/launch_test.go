package instancelaunch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

func TestLaunchIsFollowedIntoService(t *testing.T) {
	inWorld(t, emu.Group{Desired: 3, Hooks: []emu.Hook{launchHook(), terminateHook()}}, nil, func(w *world) {
		w.until(time.Minute, "they wait", w.is("3 Pending:Wait"))
		w.until(time.Minute, "nodes register", func() bool { return w.nodes() == 3 })
		if w.taintedNodes() != 3 {
			t.Error("the startup taint was removed before it was in service")
		}
		took := w.until(time.Minute, "in service", w.is("3 InService"))
		if took > 20*time.Second {
			t.Errorf("answered %s after the nodes were Ready", took)
		}
		took = w.until(time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 })
		if took > 10*time.Second {
			t.Errorf("pods were let in %s after it was in service", took)
		}
		w.until(time.Minute, "it is written down", func() bool { return len(w.sweep.Actions("workers")) == 0 })
		boots := w.sweep.Boots("workers")
		if boots == nil || boots.Count != 3 || boots.LongestSeconds < 15 || boots.LongestSeconds > 120 {
			t.Errorf("boots %+v", boots)
		}
		if w.countEvents("HookAnswered") != 3 || w.countEvents("InService") != 3 || w.countEvents("Warning") != 0 {
			t.Error(w.history())
		}
		calls := w.server.Gate.AllCalls("autoscaling")
		if calls["CompleteLifecycleAction"] != 3 || calls["RecordLifecycleActionHeartbeat"] != 0 {
			t.Errorf("calls %v", calls)
		}
	})
}

func TestThroughTheWarmPool(t *testing.T) {
	group := emu.Group{Desired: 1, Hooks: []emu.Hook{launchHook(), terminateHook()}, WarmPool: &emu.WarmPool{MinSize: 2, MaxPrepared: new(3)}}
	inWorld(t, group, func(w *world) { w.agent = true }, func(w *world) {
		w.until(5*time.Minute, "one serves and two are warm", w.is("1 InService, 2 Warmed:Stopped"))
		if w.nodes() != 1 {
			t.Errorf("%d nodes", w.nodes())
		}
		w.must(w.server.States.AutoScaling.SetDesired("workers", 3, false))
		w.until(5*time.Minute, "the hook's second firing is answered", func() bool {
			n := 0
			for _, m := range w.members() {
				if m.State == "InService" {
					n++
				}
			}
			return n == 3
		})
		w.until(time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 })
		if n, _ := w.sweep.Failures("workers"); n != 0 || w.countEvents("Warning") != 0 {
			t.Error(w.history())
		}
	})
}

// Nodes that register before the group was read again cause a refresh, and are not handled with
// their instance's old state.
func TestNodeRegisteredBetweenReads(t *testing.T) {
	group := emu.Group{Desired: 1, Hooks: []emu.Hook{launchHook(), terminateHook()}, WarmPool: &emu.WarmPool{MinSize: 2, MaxPrepared: new(3)}}
	inWorld(t, group, func(w *world) { w.agent, w.boot = true, 2*time.Second }, func(w *world) {
		w.until(5*time.Minute, "one serves and two are warm", w.is("1 InService, 2 Warmed:Stopped"))
		for _, want := range []int{2, 3, 5} { // two out of the pool, and two that are launched
			time.Sleep(5 * time.Minute)
			w.must(w.server.States.AutoScaling.SetDesired("workers", want, false))
			took := w.until(time.Minute, "all serve", func() bool {
				return strings.Contains(w.states(), fmt.Sprintf("%d InService", want))
			})
			took += w.until(time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 && w.nodes() == want })
			if took > 16*time.Second {
				t.Errorf("%d instances: took %s\n%s", want, took, w.history())
			}
		}
		if w.countEvents("InWarmPool")+w.countEvents("NodeOfWarmInstance") != 0 {
			t.Error(w.history())
		}
	})
}

func TestWarmInstanceNodesAreDeleted(t *testing.T) {
	// The kubelets start in the pool because nothing delays them. The hook is completed by
	// others, and there is no agent.
	group := emu.Group{Hooks: []emu.Hook{launchHook(), terminateHook()}, WarmPool: &emu.WarmPool{MinSize: 2, MaxPrepared: new(2)}}
	inWorld(t, group, func(w *world) { w.boot = 30 * time.Second }, func(w *world) {
		w.until(2*time.Minute, "their kubelets start", func() bool { return w.countEvents("NodeOfWarmInstance") == 2 })
		if w.nodes() != 0 {
			t.Errorf("%d nodes of instances in the pool", w.nodes())
		}
		for _, m := range w.members() {
			for _, a := range w.server.States.AutoScaling.Actions(m.InstanceID) {
				w.must(w.server.States.AutoScaling.Complete(a.Ref, emu.Continue))
			}
		}
		w.until(time.Minute, "they stop", w.is("2 Warmed:Stopped"))
		w.must(w.server.States.AutoScaling.SetDesired("workers", 1, false))
		w.until(5*time.Minute, "one comes into service with a new node", func() bool {
			return w.taintedNodes() == 0 && w.nodes() == 1 && w.countEvents("InService") == 1
		})
	})
}

func TestNoWaitWithoutNode(t *testing.T) {
	group := emu.Group{Desired: 2, Hooks: []emu.Hook{terminateHook()}}
	inWorld(t, group, func(w *world) { w.boot = time.Hour }, func(w *world) { // the nodes never come
		w.until(time.Minute, "in service", w.is("2 InService"))
		w.must(w.server.States.AutoScaling.SetDesired("workers", 0, false))
		w.until(time.Minute, "they wait", w.is("2 Terminating:Wait"))
		if took := w.until(5*time.Minute, "they go", w.is("")); took > 90*time.Second {
			t.Errorf("waited %s for nodes that never were", took)
		}
		if got := w.server.Gate.Calls("autoscaling", "CompleteLifecycleAction"); got != 2 {
			t.Errorf("%d answers", got)
		}
	})
}

func TestFailedLaunches(t *testing.T) {
	hook := launchHook()
	hook.Heartbeat = time.Minute
	inWorld(t, emu.Group{Desired: 1, Hooks: []emu.Hook{hook}}, func(w *world) { w.broken = func(string) bool { return true } }, func(w *world) {
		w.until(4*time.Hour, "three have failed in a row", func() bool { n, _ := w.sweep.Failures("workers"); return n >= 3 })
		if w.countEvents("LaunchGivenUp", "not Ready") < 3 || w.countEvents("NodeGroup", "LaunchesFail", "3 launches in a row have failed") != 1 {
			t.Error(w.history())
		}
		if _, failures := w.sweep.Failures("workers"); len(failures) != 6 {
			t.Errorf("failures %+v", failures)
		}
		w.mu.Lock()
		w.broken = func(string) bool { return false }
		w.mu.Unlock()
		w.until(time.Hour, "one comes into service", w.is("1 InService"))
		w.until(time.Minute, "the failures are reset", func() bool { n, _ := w.sweep.Failures("workers"); return n == 0 })
	})
}

func TestNotAllowed(t *testing.T) {
	inWorld(t, emu.Group{Desired: 1, Hooks: []emu.Hook{launchHook()}}, func(w *world) {
		w.server.Gate.Deny("autoscaling", "CompleteLifecycleAction")
	}, func(w *world) {
		w.until(5*time.Minute, "it says so", func() bool {
			return w.countEvents("NodeGroup Warning HookDenied", "autoscaling:CompleteLifecycleAction") == 1
		})
		time.Sleep(5 * time.Minute)
		if got := w.server.Gate.Calls("autoscaling", "CompleteLifecycleAction"); got > 3 {
			t.Errorf("%d calls that are not allowed", got)
		}
		if a := w.sweep.Actions("workers"); len(a) != 1 || a[0].Hook != "lifeboat-launch" || a[0].Expires == nil {
			t.Errorf("actions %+v", a)
		}
		w.until(5*time.Minute, "it warns that the node may be lost", func() bool { return w.countEvents("Warning LaunchHeld", "it is terminated at") == 1 })
		w.server.Gate.LiftAll()
		w.until(6*time.Minute, "it is answered once it is allowed", w.is("1 InService"))
	})
}

func TestRace19LostAndRepeatedEvents(t *testing.T) {
	// No event is delivered in this test, and many refresh requests cause few reads.
	inWorld(t, emu.Group{Desired: 2, Hooks: []emu.Hook{launchHook()}}, nil, func(w *world) {
		w.until(5*time.Minute, "in service", w.is("2 InService"))
		w.until(time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 })
		before := w.server.Gate.Calls("autoscaling", "DescribeAutoScalingGroups")
		for range 60 {
			for range 100 {
				w.groups.RequestRefresh("workers")
				w.groups.RequestRefresh("of-another-cluster")
			}
			time.Sleep(time.Second)
		}
		if got := w.server.Gate.Calls("autoscaling", "DescribeAutoScalingGroups") - before; got > 25 {
			t.Errorf("%d calls in a minute of hints", got)
		}
		if got := w.server.Gate.Calls("autoscaling", "CompleteLifecycleAction"); got != 2 {
			t.Errorf("%d answers", got)
		}
	})
}

func TestRace20ReadinessAskedOnceMore(t *testing.T) {
	inWorld(t, emu.Group{Desired: 1, Hooks: []emu.Hook{launchHook()}}, func(w *world) { w.boot = 25 * time.Minute }, func(w *world) {
		took := w.until(30*time.Minute, "in service", w.is("1 InService"))
		if took < 25*time.Minute || len(w.server.States.AutoScaling.Trace()) > 8 {
			t.Errorf("after %s: %s", took, w.history())
		}
		if got := w.server.Gate.Calls("autoscaling", "RecordLifecycleActionHeartbeat"); got < 6 || got > 9 {
			t.Errorf("%d heartbeats in 25 minutes of a hook of ten", got)
		}
	})
}

func TestRace28ManyAtOnce(t *testing.T) {
	for _, throttled := range []bool{false, true} {
		t.Run(fmt.Sprintf("throttled %t", throttled), func(t *testing.T) {
			const many = 60
			inWorld(t, emu.Group{Desired: many, Max: 200, Hooks: []emu.Hook{launchHook()}}, nil, func(w *world) {
				w.until(2*time.Minute, "they wait", w.is(fmt.Sprintf("%d Pending:Wait", many)))
				w.until(2*time.Minute, "the first node comes", func() bool { return w.nodes() > 0 })
				if throttled {
					w.server.Gate.Limit("autoscaling", wire.AnyAction, 1, 3) // one bucket for all calls, as on AWS
				}
				took := w.until(5*time.Minute, "all are in service", w.is(fmt.Sprintf("%d InService", many)))
				w.until(5*time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 })
				calls := w.server.Gate.AllCalls("autoscaling")
				t.Logf("%s, %v", took, calls)
				if calls["CompleteLifecycleAction"] > 2*many || calls["DescribeAutoScalingGroups"] > 60 || calls["DescribeLifecycleHooks"] > 5 || calls["DescribeAutoScalingInstances"] > 2 {
					t.Errorf("calls %v", calls)
				}
				if n, _ := w.sweep.Failures("workers"); n != 0 {
					t.Errorf("%d failed", n)
				}
			})
		})
	}
}

func TestRace32ControllerIsAway(t *testing.T) {
	inWorld(t, emu.Group{Desired: 2, Hooks: []emu.Hook{launchHook(), terminateHook()}}, nil, func(w *world) {
		w.until(time.Minute, "they wait", w.is("2 Pending:Wait"))
		w.ends()
		time.Sleep(8 * time.Minute)
		if w.states() != "2 Pending:Wait" || w.taintedNodes() != 2 {
			t.Fatalf("%s, %d kept", w.states(), w.taintedNodes())
		}
		w.start() // without memory
		if took := w.until(time.Minute, "in service", w.is("2 InService")); took > 15*time.Second {
			t.Errorf("took %s after the restart", took)
		}
		w.until(time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 })
		w.ends()
		w.start()
		time.Sleep(time.Minute)
		if got := w.server.Gate.Calls("autoscaling", "CompleteLifecycleAction"); got != 2 {
			t.Errorf("%d answers", got)
		}
	})
}
