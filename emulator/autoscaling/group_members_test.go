package autoscaling_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

func TestDetachMembers(t *testing.T) {
	inLiving(t, autoscaling.Group{Min: 2, Desired: 2, WarmPool: fixed(1, ""), Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		warm := r.in(autoscaling.WarmedStopped)[0]
		id := r.in(autoscaling.InService)[0]
		activities := must(r.DetachMembers("g", []string{id}, false))(t)
		same(t, "at once", []string{r.at(id), activities[0].Status, activities[0].Description}, []string{"Detaching > Detached", "InProgress", "Detaching EC2 instance: " + id})
		pass(50 * time.Millisecond)
		settled()
		in, _ := r.ec2.Instance(id)
		same(t, "it runs on, with no group", []any{r.at(id), in.State, in.Tags["aws:autoscaling:groupName"], r.TargetState(id)}, []any{"gone", ec2.Running, "", "Detached"})
		same(t, "the warm one has its place", []any{r.states(), slices.Contains(r.in(autoscaling.InService), warm)}, []any{"1 Warmed:Stopped, 2 InService", true})
		same(t, "no hook was called", len(slices.DeleteFunc(r.events(), func(e string) bool { return !contains(e, "terminate") })), 0)

		if _, err := r.DetachMembers("g", r.in(autoscaling.InService)[:1], true); !contains(err, "AutoScalingGroup g has min-size=2, max-size=10, and desired-size=2. To detach 1 instance, please update the AutoScalingGroup sizes appropriately.") {
			t.Errorf("below the minimum: %v", err)
		}
		if _, err := r.DetachMembers("g", r.in(autoscaling.WarmedStopped), false); !contains(err, "is not in InService or Standby.") {
			t.Errorf("a warm one: %v", err)
		}
		if _, err := r.DetachMembers("g", []string{id}, false); !contains(err, "The instance "+id+" is not part of Auto Scaling group g.") {
			t.Errorf("twice: %v", err)
		}

		check(t, r.AttachRunning("g", []string{id}))
		settled()
		in, _ = r.ec2.Instance(id)
		_, desired, _, _ := r.Sizes("g")
		same(t, "attached again", []any{r.at(id), in.Tags["aws:autoscaling:groupName"], desired}, []any{"InService > InService", "g", 3})
		if err := r.AttachRunning("g", []string{id}); !contains(err, "is already part of AutoScalingGroup:g") {
			t.Errorf("twice: %v", err)
		}
		must(r.DetachMembers("g", []string{id}, true))(t)
		settled()
		same(t, "with decrement", r.states(), "1 Warmed:Stopped, 2 InService")
	})
}

func TestStandby(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 2, Max: 3, Hooks: []autoscaling.Hook{up(), down()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		r.answer(t, autoscaling.Pending+":Wait", autoscaling.Continue)
		settled()
		a, b := r.in(autoscaling.InService)[0], r.in(autoscaling.InService)[1]
		must(r.EnterStandby("g", []string{a}, true))(t)
		settled()
		same(t, "with decrement", []string{r.at(a), r.states()}, []string{"Standby > Standby", "1 InService, 1 Standby"})
		must(r.EnterStandby("g", []string{b}, false))(t)
		pass(2 * time.Second)
		same(t, "without it another comes", r.states(), "1 Pending:Wait, 2 Standby")
		if _, err := r.EnterStandby("g", []string{b}, false); !contains(err, "is not in InService") {
			t.Errorf("twice: %v", err)
		}
		must(r.ExitStandby("g", []string{a, b}))(t)
		same(t, "on the way", r.at(a), "Pending > InService")
		settled()
		_, desired, _, _ := r.Sizes("g")
		same(t, "no hook is called", []any{r.states(), desired}, []any{"1 Pending:Wait, 2 InService", 3})
		must(r.EnterStandby("g", []string{a}, false))(t)
		settled()
		if _, err := r.ExitStandby("g", []string{a}); !contains(err, "max-size=3, and desired-size=3") {
			t.Errorf("beyond the maximum: %v", err)
		}
	})
}

func TestSuspendedProcesses(t *testing.T) {
	suspend := func(t *testing.T, r *region, p ...autoscaling.Process) { t.Helper(); check(t, r.Suspend("g", p)) }
	for _, tc := range []struct {
		process autoscaling.Process
		do      func(t *testing.T, r *region, id string)
		during  string
		after   string
	}{
		{autoscaling.Launch, func(t *testing.T, r *region, _ string) { check(t, r.SetDesired("g", 3, false)) },
			"1 Warmed:Stopped, 2 InService", "1 Warmed:Stopped, 3 InService"},
		{autoscaling.Launch, func(t *testing.T, r *region, id string) { must(r.DetachMembers("g", []string{id}, false))(t) },
			"1 InService, 1 Warmed:Stopped", "1 Warmed:Stopped, 2 InService"},
		{autoscaling.Launch, func(t *testing.T, r *region, _ string) { check(t, r.PutPool("g", *fixed(3, ""))) },
			"1 Warmed:Stopped, 2 InService", "2 InService, 3 Warmed:Stopped"},
		{autoscaling.Terminate, func(t *testing.T, r *region, _ string) { check(t, r.SetDesired("g", 1, false)) },
			"1 Warmed:Stopped, 2 InService", "1 InService, 1 Warmed:Stopped"},
		{autoscaling.ReplaceUnhealthy, func(t *testing.T, r *region, id string) { check(t, r.SetHealth(id, false, false)) },
			"1 Warmed:Stopped, 2 InService", "1 Warmed:Stopped, 2 InService"},
		{autoscaling.HealthCheck, func(t *testing.T, r *region, id string) { must(r.ec2.Terminate([]string{id}))(t) },
			"1 Warmed:Stopped, 2 InService", "1 Warmed:Stopped, 2 InService"},
	} {
		t.Run(string(tc.process), func(t *testing.T) {
			inLiving(t, autoscaling.Group{Desired: 2, WarmPool: fixed(1, "")}, func(t *testing.T, r *region) {
				settled()
				id := r.in(autoscaling.InService)[0]
				suspend(t, r, tc.process)
				before := r.path(id)
				tc.do(t, r, id)
				settled()
				same(t, "suspended", r.states(), tc.during)
				if during := r.path(id); during != before && tc.process != autoscaling.Launch {
					t.Errorf("it went %s", during)
				}
				check(t, r.Resume("g", nil))
				settled()
				same(t, "resumed", r.states(), tc.after)
				if healed := tc.process == autoscaling.ReplaceUnhealthy || tc.process == autoscaling.HealthCheck; healed {
					same(t, "the bad one", r.at(id), "gone")
				}
			})
		})
	}
	inLiving(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		if err := r.Suspend("g", []autoscaling.Process{"Sleep"}); !contains(err, "The process type Sleep is not valid.") {
			t.Errorf("an unknown process: %v", err)
		}
	})
}

func TestProtectedInstancesStay(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 3}, func(t *testing.T, r *region) {
		settled()
		ids := r.in(autoscaling.InService)
		check(t, r.Protect("g", ids[:2], true))
		check(t, r.SetDesired("g", 0, false))
		settled()
		same(t, "they stay", r.in(autoscaling.InService), ids[:2])
		check(t, r.Protect("g", ids[:1], false))
		settled()
		same(t, "and go", r.in(autoscaling.InService), ids[1:2])
		must(r.TerminateMember(ids[1:2], false))(t)
		settled()
		same(t, "a user's word counts", r.states(), "")
	})
}

func TestTerminateMember(t *testing.T) {
	inLiving(t, autoscaling.Group{Min: 1, Desired: 2, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		ids := r.in(autoscaling.InService)
		if _, err := r.TerminateMember(ids, true); !contains(err, "Currently, desiredSize equals minSize (1). Terminating instance without replacement will violate group's min size constraint.") {
			t.Errorf("below the minimum: %v", err)
		}
		same(t, "nothing happened", r.states(), "2 InService")
		must(r.TerminateMember(ids[:1], true))(t)
		must(r.TerminateMember(ids[:1], false))(t)
		must(r.TerminateMember(ids[1:], false))(t)
		pass(2 * time.Second)
		same(t, "one is replaced", r.states(), "1 InService, 2 Terminating:Wait")
		if _, err := r.TerminateMember([]string{"i-0123456789abcdef0"}, false); !contains(err, "No managed instance found for instance ID: i-0123456789abcdef0") {
			t.Errorf("an unknown one: %v", err)
		}
	})
}

func TestZonesAreBalanced(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 3, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		if r.RebalanceZones("g") {
			t.Error("a group in balance was balanced")
		}
		all := r.in(autoscaling.InService)
		for _, id := range all {
			if m, _ := r.Member(id); m.Zone == "eu-west-1a" {
				must(r.TerminateMember([]string{id}, true))(t)
			}
		}
		check(t, r.Update("g", func(g *autoscaling.Group) error { g.Zones, g.Desired = []string{"eu-west-1b"}, 3; return nil }))
		settled()
		check(t, r.Update("g", func(g *autoscaling.Group) error { g.Zones = nil; return nil }))
		if !r.RebalanceZones("g") {
			t.Fatal("a group out of balance was left alone")
		}
		settled()
		same(t, "the new one first", r.states(), "2 Terminating:Wait, 3 InService")
		zones := map[string]int{}
		for _, id := range r.in(autoscaling.InService) {
			m, _ := r.Member(id)
			zones[m.Zone]++
		}
		same(t, "zones", zones, map[string]int{"eu-west-1a": 1, "eu-west-1b": 1, "eu-west-1c": 1})
	})
}
