package autoscaling_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// spotGroup buys everything on the spot market.
func spotGroup(rebalance bool, hooks ...autoscaling.Hook) autoscaling.Group {
	return autoscaling.Group{Desired: 2, CapacityRebalance: rebalance, Hooks: hooks, Mixed: &autoscaling.Mixed{
		Template: ec2.TemplateRef{Name: "workers"}, Overrides: []autoscaling.Override{{Type: "m5.large"}, {Type: "c5.large"}},
		Distribution: autoscaling.Distribution{OnDemandPercent: new(int)},
	}}
}

func TestAbandonedLaunchIsReplaced(t *testing.T) {
	for _, how := range []string{"answered", "timed out"} {
		t.Run(how, func(t *testing.T) {
			inLiving(t, autoscaling.Group{Desired: 1, Hooks: []autoscaling.Hook{up(), down()}}, func(t *testing.T, r *region) {
				pass(2 * time.Second)
				first := r.in(autoscaling.Pending + ":Wait")[0]
				if how == "answered" {
					r.answer(t, autoscaling.Pending+":Wait", autoscaling.Abandon)
					pass(10 * time.Second)
				} else {
					pass(time.Minute + 5*time.Second)
				}
				same(t, "another", []string{r.at(first), r.states()}, []string{"gone", "1 Pending:Wait"})
				same(t, "way", r.path(first), "Pending Pending:Wait Terminating Terminating:Proceed Terminated")
				last := r.Activities("g")
				same(t, "activities", []any{len(last), last[2].Status}, []any{3, "Cancelled"})
			})
		})
	}
}

func TestRetained(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 1, Retain: true, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		id := r.in(autoscaling.InService)[0]
		check(t, r.SetDesired("g", 0, false))
		pass(2 * time.Minute)
		in, _ := r.ec2.Instance(id)
		same(t, "after the time-out", []any{r.at(id), in.State}, []any{"Terminating:Retained > Terminated", ec2.Running})
		if err := r.DeleteGroup("g", false); err == nil {
			t.Error("the group was deleted under it")
		}
		must(r.TerminateMember([]string{id}, false))(t)
		same(t, "no hook again", r.at(id), "Terminating:Proceed > Terminated")
		settled()
		same(t, "in the end", r.at(id), "gone")
	})
	inLiving(t, autoscaling.Group{Desired: 1, Retain: true, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		check(t, r.SetDesired("g", 0, false))
		pass(time.Second)
		r.answer(t, autoscaling.Terminating+":Wait", autoscaling.Continue)
		settled()
		same(t, "not after CONTINUE", r.states(), "")
	})
}

// EC2 acts on one of two instances in service.
func TestSpotReclaimOfMember(t *testing.T) {
	for _, tc := range []struct {
		name      string
		rebalance bool
		do        func(r *region, id string) error
		// soon is the states after five seconds, cause of the end of the instance
		soon, soonAt, after string
		cause               string
	}{
		{"recommended, with rebalancing: launch first", true, func(r *region, id string) error { return r.ec2.Recommend([]string{id}) },
			"1 Terminating:Wait, 2 InService", "Terminating:Wait > Terminated", "2 InService", "EC2 instance rebalance recommendation"},
		{"recommended, without", false, func(r *region, id string) error { return r.ec2.Recommend([]string{id}) },
			"2 InService", "InService > InService", "2 InService", ""},
		{"final notice, with rebalancing: hook and replacement at once", true, func(r *region, id string) error {
			return r.ec2.Interrupt([]string{id}, ec2.InterruptOptions{})
		}, "1 Terminating:Wait, 2 InService", "Terminating:Wait > Terminated", "2 InService", "Spot Instance interruption notice"},
		{"final notice, without: nothing before the end", false, func(r *region, id string) error {
			return r.ec2.Interrupt([]string{id}, ec2.InterruptOptions{})
		}, "2 InService", "InService > InService", "2 InService", "EC2 health check"},
		{"terminated by a user: no hook, replaced at once", false, func(r *region, id string) error {
			_, err := r.ec2.Terminate([]string{id})
			return err
		}, "2 InService", "gone", "2 InService", "EC2 health check"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hook := down()
			hook.Heartbeat = time.Hour
			inLiving(t, spotGroup(tc.rebalance, hook), func(t *testing.T, r *region) {
				settled()
				id := r.in(autoscaling.InService)[0]
				check(t, tc.do(r, id))
				pass(5 * time.Second)
				same(t, "soon", []string{r.states(), r.at(id)}, []string{tc.soon, tc.soonAt})
				pass(2*time.Minute + 5*time.Second)
				if slices.Contains(r.in(autoscaling.Terminating+":Wait"), id) {
					r.answer(t, autoscaling.Terminating+":Wait", autoscaling.Continue)
					settled()
				}
				same(t, "after", r.states(), tc.after)
				var cause string
				for _, c := range r.Trace() {
					if c.InstanceID == id && c.To == autoscaling.Terminating {
						cause = c.Cause
					}
				}
				if tc.cause != "" && !contains(cause, tc.cause) || tc.cause == "" && cause != "" {
					t.Errorf("cause %q", cause)
				}
			})
		})
	}
}

// Spot instances end at the deadline, even while their hook is active.
func TestSpotReclaimIgnoresHookResult(t *testing.T) {
	hook := down()
	hook.Heartbeat = time.Hour
	inLiving(t, spotGroup(true, hook), func(t *testing.T, r *region) {
		settled()
		id := r.in(autoscaling.InService)[0]
		check(t, r.ec2.Interrupt([]string{id}, ec2.InterruptOptions{}))
		pass(119 * time.Second)
		same(t, "before", r.at(id), "Terminating:Wait > Terminated")
		pass(5 * time.Second)
		same(t, "after", []string{r.at(id), r.states()}, []string{"gone", "2 InService"})
	})
}

func TestStoppedMemberIsReplacedAfterHook(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 2, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		id := r.in(autoscaling.InService)[0]
		must(r.ec2.Stop([]string{id}))(t)
		pass(5 * time.Second)
		same(t, "soon", []string{r.states(), r.at(id)}, []string{"1 Terminating:Wait, 2 InService", "Terminating:Wait > Terminated"})
		r.answer(t, autoscaling.Terminating+":Wait", autoscaling.Continue)
		settled()
		same(t, "after", []string{r.states(), r.at(id)}, []string{"2 InService", "gone"})
	})
}

// There is no health check before the launch hook completes.
func TestHealthIsUncheckedDuringLaunchHook(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 1, Hooks: []autoscaling.Hook{up()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		id := r.in(autoscaling.Pending + ":Wait")[0]
		must(r.ec2.Stop([]string{id}))(t)
		settled()
		same(t, "held", r.at(id), "Pending:Wait > InService")
		r.answer(t, autoscaling.Pending+":Wait", autoscaling.Continue)
		pass(5 * time.Second)
		same(t, "afterwards it is seen", []string{r.at(id), r.states()}, []string{"gone", "1 Pending:Wait"})
	})
}

func TestHealth(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 1, GracePeriod: time.Minute}, func(t *testing.T, r *region) {
		settled()
		id := r.in(autoscaling.InService)[0]
		check(t, r.SetHealth(id, false, true))
		settled()
		same(t, "in the grace period", r.at(id), "InService > InService")
		check(t, r.SetHealth(id, false, false))
		settled()
		same(t, "at once", []string{r.at(id), r.states()}, []string{"gone", "1 InService"})
		id = r.in(autoscaling.InService)[0]
		pass(time.Minute)
		check(t, r.SetHealth(id, false, true))
		settled()
		same(t, "after the grace period", r.at(id), "gone")
	})
}

func TestDeletedHookReleasesInstance(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 2, Hooks: []autoscaling.Hook{up(), down()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		stays := r.in(autoscaling.Pending + ":Wait")
		check(t, r.Complete(r.Actions(stays[0])[0].Ref, autoscaling.Continue))
		pass(time.Second)
		must(r.TerminateMember(stays[:1], true))(t)
		same(t, "two wait", r.states(), "1 Pending:Wait, 1 Terminating:Wait")
		check(t, r.DeleteHook("g", "up"))
		check(t, r.DeleteHook("g", "down"))
		settled()
		same(t, "the launch was abandoned", []string{r.at(stays[0]), r.at(stays[1]), r.states()}, []string{"gone", "gone", "1 InService"})
		if r.DeleteHook("g", "up") == nil {
			t.Error("a hook was deleted twice")
		}
	})
}

func TestDelete(t *testing.T) {
	inLiving(t, autoscaling.Group{Max: 3, Desired: 2, WarmPool: &autoscaling.WarmPool{}, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		if err := r.DeleteGroup("g", false); !contains(err, "ResourceInUse") {
			t.Errorf("with instances: %v", err)
		}
		check(t, r.DeleteGroup("g", true))
		same(t, "no hook is asked", r.states(), "1 Warmed:Terminating:Proceed, 2 Terminating:Proceed")
		if err := r.SetDesired("g", 1, false); !contains(err, "is pending delete") {
			t.Errorf("while it goes: %v", err)
		}
		settled()
		same(t, "gone", []string{r.states(), r.GroupARN("g")}, []string{"", ""})
	})
	inLiving(t, autoscaling.Group{Desired: 1}, func(t *testing.T, r *region) {
		settled()
		check(t, r.SetDesired("g", 0, false))
		pass(time.Second)
		if err := r.DeleteGroup("g", false); !contains(err, "ScalingActivityInProgress") {
			t.Errorf("while the last one goes: %v", err)
		}
		settled()
		check(t, r.DeleteGroup("g", false))
		same(t, "gone", r.GroupARN("g"), "")
	})
}
