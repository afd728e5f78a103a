package autoscaling_test

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// fixed is a warm pool of a fixed size, independent of the group's size.
func fixed(n int, state autoscaling.LifecycleState) *autoscaling.WarmPool {
	none := 0
	return &autoscaling.WarmPool{MinSize: n, MaxPrepared: &none, State: state}
}

func TestPoolStates(t *testing.T) {
	for _, tc := range []struct {
		state autoscaling.LifecycleState
		// at EC2 while warm, and whether it is the same boot afterwards
		at       ec2.InstanceState
		sameBoot bool
	}{
		{autoscaling.WarmedStopped, ec2.Stopped, false},
		{autoscaling.WarmedHibernated, ec2.Stopped, true},
		{autoscaling.WarmedRunning, ec2.Running, true},
	} {
		t.Run(string(tc.state), func(t *testing.T) {
			inLiving(t, autoscaling.Group{WarmPool: fixed(1, tc.state)}, func(t *testing.T, r *region) {
				settled()
				same(t, "warm", r.states(), "1 "+string(tc.state))
				id := r.in(tc.state)[0]
				before, _ := r.ec2.Instance(id)
				check(t, r.SetDesired("g", 1, false))
				settled()
				same(t, "used, and filled again", r.states(), "1 InService, 1 "+string(tc.state))
				after, _ := r.ec2.Instance(id)
				same(t, "at EC2", []any{before.State, after.State, before.BootID == after.BootID, r.in(autoscaling.InService)[0]},
					[]any{tc.at, ec2.Running, tc.sameBoot, id})
			})
		})
	}
}

// Without a launch hook an instance for the pool is stopped as soon as it runs, before its user
// data finishes.
func TestPoolWithoutHookStopsImmediately(t *testing.T) {
	inLiving(t, autoscaling.Group{WarmPool: fixed(1, "")}, func(t *testing.T, r *region) {
		settled()
		var booted, stopping time.Time
		for _, c := range r.Trace() {
			switch c.To {
			case autoscaling.WarmedPending:
				booted = c.Time.Add(300 * time.Millisecond) // as long as EC2 takes
			case autoscaling.WarmedPending + ":Proceed":
				stopping = c.Time
			}
		}
		if gap := stopping.Sub(booted); gap < 0 || gap > 200*time.Millisecond {
			t.Errorf("stopped %s after it ran", gap)
		}
	})
}

func TestReuseOnScaleIn(t *testing.T) {
	pool := autoscaling.WarmPool{ReuseOnScaleIn: true}
	inLiving(t, autoscaling.Group{Max: 3, Desired: 2, WarmPool: &pool, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		same(t, "at first", r.states(), "1 Warmed:Stopped, 2 InService")
		check(t, r.SetDesired("g", 1, false))
		pass(time.Second)
		same(t, "held by the terminate hook", r.states(), "1 InService, 1 Warmed:Pending:Wait, 1 Warmed:Stopped")
		id := r.in(autoscaling.WarmedPending + ":Wait")[0]
		a := r.Actions(id)[0]
		same(t, "action", []string{a.Hook, string(a.Transition), a.Origin, a.Destination, r.TargetState(id)},
			[]string{"down", "autoscaling:EC2_INSTANCE_TERMINATING", "AutoScalingGroup", "WarmPool", "Warmed:Stopped"})
		check(t, r.Complete(a.Ref, autoscaling.Continue))
		settled()
		same(t, "returned", r.states(), "1 InService, 2 Warmed:Stopped")
		check(t, r.SetDesired("g", 3, false))
		settled()
		same(t, "and back", []string{r.states(), r.path(id)}, []string{"3 InService",
			"Pending Pending:Proceed InService Warmed:Pending Warmed:Pending:Wait Warmed:Pending:Proceed Warmed:Stopped Pending Pending:Proceed InService"})

		// An instance that scales in is terminated while the pool is full.
		check(t, r.PutPool("g", autoscaling.WarmPool{ReuseOnScaleIn: true, MaxPrepared: new(int)}))
		check(t, r.SetDesired("g", 2, false))
		pass(time.Second)
		same(t, "no room", r.states(), "1 Terminating:Wait, 2 InService")
	})
}

func TestAbandonedReturnTerminates(t *testing.T) {
	pool := autoscaling.WarmPool{ReuseOnScaleIn: true}
	inLiving(t, autoscaling.Group{Max: 1, Desired: 1, WarmPool: &pool, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		id := r.in(autoscaling.InService)[0]
		must(r.TerminateMember([]string{id}, true))(t)
		pass(time.Second)
		r.answer(t, autoscaling.WarmedPending+":Wait", autoscaling.Abandon)
		settled()
		same(t, "replaced in the pool", []string{r.at(id), r.states()}, []string{"gone", "1 Warmed:Stopped"})
	})
}

func TestPoolShrinksAndIsDeleted(t *testing.T) {
	inLiving(t, autoscaling.Group{Max: 3, WarmPool: &autoscaling.WarmPool{}, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		settled()
		same(t, "as large as the group could be", r.states(), "3 Warmed:Stopped")
		zones := map[string]bool{}
		for _, m := range r.Members() {
			zones[m.Zone] = true
		}
		same(t, "zones", len(zones), 3)
		two := 2
		check(t, r.PutPool("g", autoscaling.WarmPool{MaxPrepared: &two}))
		pass(time.Second)
		same(t, "one too many", r.states(), "1 Warmed:Terminating:Wait, 2 Warmed:Stopped")
		id := r.in(autoscaling.WarmedTerminating + ":Wait")[0]
		a := r.Actions(id)[0]
		same(t, "action", []string{a.Origin, a.Destination, r.TargetState(id)}, []string{"WarmPool", "EC2", "Warmed:Terminated"})
		r.answer(t, autoscaling.WarmedTerminating+":Wait", autoscaling.Continue)
		settled()
		same(t, "smaller", []string{r.states(), r.path(id)}, []string{"2 Warmed:Stopped", "Warmed:Pending Warmed:Pending:Proceed Warmed:Stopped " +
			"Warmed:Terminating Warmed:Terminating:Wait Warmed:Terminating:Proceed Warmed:Terminated"})

		check(t, r.DeletePool("g", false))
		pass(time.Second)
		same(t, "on their way", r.states(), "2 Warmed:Terminating:Wait")
		if p := must(r.Pool("g"))(t); p.MaxPrepared == nil {
			t.Error("the pool is gone before its instances")
		}
		r.answer(t, autoscaling.WarmedTerminating+":Wait", autoscaling.Continue)
		settled()
		same(t, "gone", []any{r.states(), must(r.Pool("g"))(t)}, []any{"", autoscaling.WarmPool{}})

		check(t, r.PutPool("g", autoscaling.WarmPool{MinSize: 1, MaxPrepared: new(int)}))
		settled()
		check(t, r.DeletePool("g", true))
		same(t, "by force, unasked", r.states(), "1 Warmed:Terminating:Proceed")
	})
}

// The pool replaces a warm instance that is terminated at EC2.
func TestPoolRefills(t *testing.T) {
	inLiving(t, autoscaling.Group{WarmPool: fixed(2, "")}, func(t *testing.T, r *region) {
		settled()
		id := r.in(autoscaling.WarmedStopped)[0]
		must(r.ec2.Terminate([]string{id}))(t)
		settled()
		same(t, "members", []string{r.at(id), r.states()}, []string{"gone", "2 Warmed:Stopped"})
		if _, err := r.TerminateMember([]string{r.in(autoscaling.WarmedStopped)[0]}, false); err == nil {
			t.Error("a warm instance was terminated through the group")
		}
	})
}

// An empty pool leads to cold starts.
func TestDepletedPoolCausesColdStarts(t *testing.T) {
	inLiving(t, autoscaling.Group{WarmPool: fixed(1, ""), Hooks: []autoscaling.Hook{up()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		r.answer(t, autoscaling.WarmedPending+":Wait", autoscaling.Continue)
		settled()
		check(t, r.SetDesired("g", 3, false))
		pass(2 * time.Second)
		same(t, "one is warm, two are cold", r.states(), "1 Warmed:Pending:Wait, 3 Pending:Wait")
		origins := map[string]int{}
		for _, id := range r.in(autoscaling.Pending + ":Wait") {
			origins[r.Actions(id)[0].Origin]++
		}
		same(t, "origins", origins, map[string]int{"WarmPool": 1, "EC2": 2})
	})
}
