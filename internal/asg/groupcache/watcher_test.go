package groupcache_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

func hooks() []emu.Hook {
	return []emu.Hook{
		{Name: "lifeboat-launch", Transition: emu.Launching, Heartbeat: 10 * time.Minute},
		{Name: "lifeboat-terminate", Transition: emu.Leaving, Heartbeat: 5 * time.Minute, DefaultResult: emu.Continue},
	}
}

func TestKnownGroupFields(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{
			Name: "workers", Min: 1, Max: 7, Desired: 2, Hooks: hooks(), Tags: map[string]string{"team": "a"}, Operator: "eks.amazonaws.com",
			WarmPool: &emu.WarmPool{MinSize: 1, MaxPrepared: new(3), ReuseOnScaleIn: true},
		})
		w.named = []string{"workers", "not-there"}
		if _, ok := w.watch.Group("workers"); ok || w.watch.Known() {
			t.Error("it knows before it has asked")
		}
		stop := w.runs()
		defer stop()
		pass(time.Minute)
		if !w.watch.Known() || w.watch.Err() != nil {
			t.Errorf("known %v, %v", w.watch.Known(), w.watch.Err())
		}
		g, _ := w.watch.Group("workers")
		members := g.Members
		g.Members, g.At = nil, time.Time{}
		want := groupcache.Group{
			Name: "workers", ARN: g.ARN, Operator: "eks.amazonaws.com", Min: 1, Max: 100, Desired: 2, Tags: map[string]string{"team": "a"}, Pool: true, Reuse: true,
			HooksKnown: true, Hooks: []groupcache.Hook{
				{Name: "lifeboat-launch", Timeout: 10 * time.Minute, Global: 1000 * time.Minute, Abandons: true},
				{Name: "lifeboat-terminate", Terminating: true, Timeout: 5 * time.Minute, Global: 500 * time.Minute},
			},
		}
		if diff := cmp.Diff(want, g); diff != "" || !strings.HasPrefix(g.ARN, "arn:aws:autoscaling:") {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := w.states("workers"); got != "1 Warmed:Pending:Wait, 2 Pending:Wait" {
			t.Errorf("members: %s", got)
		}
		m, ok, at := w.watch.Member(members[0].InstanceID)
		if !ok || m != members[0] || m.Group != "workers" || !m.Healthy || m.LaunchTemplateVersion != "1" || m.At.Step != lifecycle.Waiting || time.Since(at) > 30*time.Second {
			t.Errorf("%+v, %v, %s", m, ok, at)
		}
		if _, ok := w.watch.Group("not-there"); ok || len(w.watch.Groups()) != 1 {
			t.Error("a group that is not there is known")
		}
	})
}

func TestGroupsOfNodesAreDiscovered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "ours", Desired: 3})
		w.group(emu.Group{Name: "ours-too", Desired: 1})
		pass(10 * time.Second)
		w.join()
		w.group(emu.Group{Name: "theirs", Desired: 3})
		stop := w.runs()
		defer stop()
		pass(10 * time.Minute)
		if got := w.states("ours") + "; " + w.states("ours-too") + "; " + w.states("theirs"); got != "3 InService; 1 InService; " {
			t.Errorf("got %s", got)
		}
		calls := w.calls()
		if calls["DescribeAutoScalingInstances"] != 1 || calls["DescribeAutoScalingGroups"] < 18 || calls["DescribeAutoScalingGroups"] > 24 || len(calls) != 2 {
			t.Errorf("calls in ten minutes: %v", calls)
		}
		// A group without nodes is polled for a while, because hooks may still
		// hold its instances. A deleted group disappears at once.
		w.must(w.server.States.AutoScaling.SetDesired("ours", 0, false))
		var nodes []string
		for _, m := range w.server.States.AutoScaling.Members() {
			nodes = append(nodes, m.InstanceID)
		}
		pass(30 * time.Minute)
		if _, ok := w.watch.Group("ours"); !ok || len(nodes) == 0 {
			t.Error("forgotten")
		}
		w.must(w.server.States.AutoScaling.DeleteGroup("ours-too", true))
		pass(time.Minute)
		if _, ok := w.watch.Group("ours-too"); ok {
			t.Error("one that is deleted is there")
		}
	})
}

// Auto Scaling may not show a new instance yet. The group of its node is found in the next round,
// and not an hour later.
func TestGroupOfYoungNodeIsAskedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "workers", Desired: 2})
		pass(time.Minute)
		w.server.States.AutoScaling.SetConsistency(emu.Consistency{Lag: 5 * time.Minute})
		w.join()
		defer w.runs()()
		if got := w.states("workers"); got != "" {
			t.Fatalf("Auto Scaling shows the new instances at once: %s", got)
		}
		w.server.States.AutoScaling.SetConsistency(emu.Consistency{})
		w.watch.RequestRefreshNew()
		pass(5 * time.Second)
		if got := w.states("workers"); got != "2 InService" {
			t.Errorf("after a request, the group has %q, want 2 InService", got)
		}
	})
}

func TestNoCallsWithoutGroups(t *testing.T) {
	inWorld(t, func(w *world) {
		stop := w.runs()
		defer stop()
		pass(time.Hour)
		if calls := w.calls(); len(calls) != 0 || w.watch.Age() != 0 || !w.watch.Known() {
			t.Errorf("calls %v, age %s", calls, w.watch.Age())
		}
	})
}

// An instance moves between the lists of the pool and the group, and is never
// lost.
func TestInstanceIsTrackedThroughWarmPool(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.States.AutoScaling.SetConsistency(emu.Consistency{Lag: 3 * time.Second})
		w.group(emu.Group{Name: "workers", Desired: 1, WarmPool: &emu.WarmPool{MinSize: 2, MaxPrepared: new(4), ReuseOnScaleIn: true}})
		w.named = []string{"workers"}
		stop := w.runs()
		defer stop()
		pass(2 * time.Minute)
		seen := map[string]bool{}
		for i := range 60 {
			if i%10 == 0 {
				w.must(w.server.States.AutoScaling.SetDesired("workers", 1+i/10%2, false))
			}
			pass(7 * time.Second)
			w.watch.RequestRefresh("workers")
			for id := range seen {
				alive := slices.ContainsFunc(w.server.States.AutoScaling.Members(), func(m emu.Member) bool { return m.InstanceID == id })
				if _, ok, _ := w.watch.Member(id); alive && !ok {
					t.Errorf("round %d: %s is not known any more: %s", i, id, w.states("workers"))
				}
			}
			for _, g := range w.watch.Groups() {
				for _, m := range g.Members {
					seen[m.InstanceID] = true
				}
			}
		}
		if len(seen) < 3 {
			t.Errorf("saw %v", seen)
		}
	})
}

func TestHooksAreReadRarely(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "workers", Desired: 2, Hooks: hooks()})
		w.named = []string{"workers"}
		stop := w.runs()
		defer stop()
		pass(29 * time.Minute)
		if got := w.calls()["DescribeLifecycleHooks"]; got != 3 {
			t.Errorf("%d calls in half an hour", got)
		}
		w.must(w.server.States.AutoScaling.PutHook(emu.Hook{Name: "audit", Group: "workers", Transition: emu.Leaving, Heartbeat: time.Minute}))
		w.watch.RequestRefreshHooks("workers")
		pass(5 * time.Second)
		if g, _ := w.watch.Group("workers"); len(g.Hooks) != 3 {
			t.Errorf("hooks %+v", g.Hooks)
		}
		w.must(w.server.States.AutoScaling.DeleteHook("workers", "audit"))
		if g, ok, err := w.watch.Look(w.Context(), "workers"); err != nil || !ok || len(g.Hooks) != 2 {
			t.Errorf("%+v, %v", g.Hooks, err)
		}
		if _, ok, err := w.watch.Look(w.Context(), "none"); err != nil || ok {
			t.Errorf("%v, %v", ok, err)
		}
	})
}

func TestNotAllowed(t *testing.T) {
	for action, known := range map[string]string{
		"DescribeAutoScalingGroups": "", "DescribeWarmPool": "1 Pending:Wait", "DescribeLifecycleHooks": "1 Pending:Wait, 1 Warmed:Pending:Wait",
	} {
		t.Run(action, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.group(emu.Group{Name: "workers", Desired: 1, Hooks: hooks(), WarmPool: &emu.WarmPool{MinSize: 1, MaxPrepared: new(2)}})
				w.named = []string{"workers"}
				w.server.Gate.Deny("autoscaling", action)
				stop := w.runs()
				defer stop()
				pass(5 * time.Minute)
				if got := w.states("workers"); got != known {
					t.Errorf("knows %q", got)
				}
				if w.linesWith("accessDenied", "grant autoscaling:"+action+" on") == 0 || w.watch.Err() == nil || w.watch.Known() != (known != "") {
					t.Errorf("%v, known %v; log: %s", w.watch.Err(), w.watch.Known(), strings.Join(w.lines, "\n"))
				}
				if got := w.calls()[action]; got > 25 {
					t.Errorf("%d calls in five minutes", got)
				}
				w.server.Gate.LiftAll()
				pass(time.Minute)
				g, _ := w.watch.Group("workers")
				if got := w.states("workers"); got != "1 Pending:Wait, 1 Warmed:Pending:Wait" || !g.HooksKnown || w.watch.Err() != nil {
					t.Errorf("knows %q, hooks %v, %v", got, g.HooksKnown, w.watch.Err())
				}
			})
		})
	}
}

// Data stay while AWS does not respond: a failed read does not mean that there
// are no instances.
func TestAWSOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "workers", Desired: 2, WarmPool: &emu.WarmPool{MinSize: 1, MaxPrepared: new(3)}})
		w.named = []string{"workers"}
		stop := w.runs()
		defer stop()
		pass(2 * time.Minute)
		for _, action := range []string{"DescribeAutoScalingGroups", "DescribeWarmPool"} {
			w.server.Gate.Fail("autoscaling", action)
			pass(5 * time.Minute)
			if got := w.states("workers"); got != "1 Warmed:Stopped, 2 InService" {
				t.Errorf("%s: knows %q", action, got)
			}
			w.server.Gate.LiftAll()
			pass(time.Minute)
		}
		w.server.Gate.Fail("autoscaling", "DescribeAutoScalingGroups")
		pass(5 * time.Minute)
		if age := w.watch.Age(); age < 4*time.Minute || w.linesWith("unavailable") == 0 {
			t.Errorf("age %s", age)
		}
		if n, err := testutil.GatherAndCount(w.registry, "lifeboat_group_calls_total", "lifeboat_group_age_seconds"); err != nil || n != 33 {
			t.Errorf("%d series, want one for each of 4 operations and 8 results, and the age (%v)", n, err)
		}
	})
}

func TestChangesAreReportedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "workers", Desired: 3})
		w.named = []string{"workers"}
		pass(time.Minute)
		stop := w.runs()
		defer stop()
		pass(10 * time.Minute)
		w.must(w.server.States.AutoScaling.SetDesired("workers", 2, false))
		pass(10 * time.Minute)
		if first := w.news[0]; first != "workers 3" || len(w.news) > 5 || len(w.news) < 2 {
			t.Errorf("news %v", w.news)
		}
	})
}

func TestRace22DeregisteringBeforeTheWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "workers", Desired: 1, Hooks: hooks()[1:], DeregistrationDelay: 5 * time.Minute})
		w.named = []string{"workers"}
		stop := w.runs()
		defer stop()
		pass(2 * time.Minute)
		w.must(w.server.States.AutoScaling.SetDesired("workers", 0, false))
		pass(500 * time.Millisecond)
		w.watch.RequestRefresh("workers") // its event, or the node's agent, says so
		pass(1500 * time.Millisecond)
		if got := w.states("workers"); got != "1 Terminating" {
			t.Errorf("two seconds after the group has decided it is %q", got)
		}
	})
	// Without a request the change is found at the next interval.
	inWorld(t, func(w *world) {
		w.group(emu.Group{Name: "workers", Desired: 1, Hooks: hooks()[1:], DeregistrationDelay: 5 * time.Minute})
		w.named = []string{"workers"}
		stop := w.runs()
		defer stop()
		pass(2 * time.Minute)
		w.must(w.server.States.AutoScaling.SetDesired("workers", 0, false))
		pass(35 * time.Second)
		if got := w.states("workers"); got != "1 Terminating" {
			t.Errorf("after a round it is %q", got)
		}
	})
}

func TestRace28ManyAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 120 {
			name := fmt.Sprintf("g-%03d", i)
			w.group(emu.Group{Name: name, Desired: 2, Hooks: hooks()[:1]})
			w.named = append(w.named, name)
		}
		stop := w.runs()
		defer stop()
		pass(time.Minute)
		first := w.calls()
		for range 10 {
			for _, name := range w.named {
				w.watch.RequestRefresh(name)
			}
		}
		pass(10 * time.Minute)
		calls := w.calls()
		if first["DescribeLifecycleHooks"] != 120 || calls["DescribeLifecycleHooks"] > 2*120 || calls["DescribeAutoScalingGroups"] > 120 || len(calls) != 2 {
			t.Errorf("first %v, then %v", first, calls)
		}
		// Throttling slows the polling, but never stops it while hooks hold
		// instances.
		w.server.Gate.Throttle("autoscaling", "DescribeAutoScalingGroups", -1)
		pass(10 * time.Minute)
		throttled := w.calls()["DescribeAutoScalingGroups"] - calls["DescribeAutoScalingGroups"]
		if throttled < 8 || throttled > 20 {
			t.Errorf("%d calls in ten minutes of being throttled", throttled)
		}
		w.server.Gate.LiftAll()
		pass(2 * time.Minute)
		if err := w.watch.Err(); err != nil {
			t.Error(err)
		}
	})
}
