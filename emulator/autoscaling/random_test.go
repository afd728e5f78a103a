package autoscaling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// allowed are the possible state changes. An instance can be terminated in every state. Source: Amazon
// EC2 Auto Scaling User Guide, Amazon EC2 Auto Scaling instance lifecycle, and Lifecycle state
// transitions for instances in a warm pool.
var allowed = map[string]string{
	"":                            "Pending, Warmed:Pending",
	"Pending":                     "Pending:Wait, Pending:Proceed, InService, Terminating",
	"Pending:Wait":                "Pending:Proceed, Terminating",
	"Pending:Proceed":             "InService, Terminating",
	"InService":                   "Terminating, Warmed:Pending, EnteringStandby, Detaching",
	"Terminating":                 "Terminating:Wait, Terminating:Proceed, Terminated",
	"Terminating:Wait":            "Terminating:Proceed, Terminating:Retained, Terminated",
	"Terminating:Proceed":         "Terminated",
	"Terminating:Retained":        "Terminating",
	"EnteringStandby":             "Standby, Terminating",
	"Standby":                     "Pending, Detaching, Terminating",
	"Detaching":                   "Detached, Terminating",
	"Warmed:Pending":              "Warmed:Pending:Wait, Warmed:Pending:Proceed, Warmed:Terminating",
	"Warmed:Pending:Wait":         "Warmed:Pending:Proceed, Warmed:Pending:Retained, Warmed:Terminating",
	"Warmed:Pending:Proceed":      "Warmed:Stopped, Warmed:Running, Warmed:Hibernated, Warmed:Terminating",
	"Warmed:Pending:Retained":     "Warmed:Terminating",
	"Warmed:Stopped":              "Pending, Warmed:Terminating",
	"Warmed:Running":              "Pending, Warmed:Terminating",
	"Warmed:Hibernated":           "Pending, Warmed:Terminating",
	"Warmed:Terminating":          "Warmed:Terminating:Wait, Warmed:Terminating:Proceed, Warmed:Terminated",
	"Warmed:Terminating:Wait":     "Warmed:Terminating:Proceed, Warmed:Terminating:Retained, Warmed:Terminated",
	"Warmed:Terminating:Proceed":  "Warmed:Terminated",
	"Warmed:Terminating:Retained": "Warmed:Terminating",
}

// chance performs one random action of users, of EC2 or of clients that complete hooks.
func (r *region) chance(rng *rand.Rand) string {
	var id string
	if members := r.Members(); len(members) > 0 {
		id = members[rng.IntN(len(members))].InstanceID
	}
	one, yes, n := []string{id}, rng.IntN(2) == 0, rng.IntN(7)
	states := []autoscaling.LifecycleState{autoscaling.WarmedStopped, autoscaling.WarmedRunning, autoscaling.WarmedHibernated}
	processes := []autoscaling.Process{autoscaling.Launch, autoscaling.Terminate, autoscaling.HealthCheck, autoscaling.ReplaceUnhealthy}
	some := []autoscaling.Process{processes[rng.IntN(len(processes))]}
	acts := []struct {
		name string
		do   func()
	}{
		{"desired", func() { _ = r.SetDesired("g", n, false) }},
		{"answer", func() {
			for _, a := range r.Actions(id) {
				_ = r.Complete(a.Ref, autoscaling.Continue)
			}
		}},
		{"abandon", func() {
			for _, a := range r.Actions(id)[:min(1, len(r.Actions(id)))] {
				_ = r.Complete(a.Ref, autoscaling.Abandon)
			}
		}},
		{"ec2 terminate", func() { _, _ = r.ec2.Terminate(one) }},
		{"ec2 stop", func() { _, _ = r.ec2.Stop(one) }},
		{"interrupt", func() { _ = r.ec2.Interrupt(one, ec2.InterruptOptions{}) }},
		{"recommend", func() { _ = r.ec2.Recommend(one) }},
		{"terminate", func() { _, _ = r.TerminateMember(one, yes) }},
		{"detach", func() { _, _ = r.DetachMembers("g", one, yes) }},
		{"standby", func() { _, _ = r.EnterStandby("g", one, yes) }},
		{"exit standby", func() { _, _ = r.ExitStandby("g", one) }},
		{"pool", func() {
			_ = r.PutPool("g", autoscaling.WarmPool{MinSize: n / 2, MaxPrepared: &n, State: states[n%3], ReuseOnScaleIn: yes})
		}},
		{"end of pool", func() { _ = r.DeletePool("g", yes) }},
		{"suspend", func() { _ = r.Suspend("g", some) }},
		{"resume", func() { _ = r.Resume("g", nil) }},
		{"health", func() { _ = r.SetHealth(id, yes, false) }},
		{"protect", func() { _ = r.Protect("g", one, yes) }},
		{"zones", func() { r.RebalanceZones("g") }},
		{"refresh", func() { _, _ = r.StartRefresh("g", autoscaling.RefreshOptions{SkipMatching: yes}) }},
		{"no capacity", func() { r.limit("m5.large", ec2.OnDemand, n) }},
		{"capacity", func() { r.ec2.RestoreCapacity() }},
		{"hook", func() {
			_ = r.PutHook(autoscaling.Hook{Group: "g", Name: "more", Transition: autoscaling.Launching, Heartbeat: time.Minute})
		}},
		{"no hook", func() { _ = r.DeleteHook("g", "more") }},
	}
	act := acts[rng.IntN(len(acts))]
	act.do()
	return act.name + " " + id
}

// removeFaults removes hooks, suspended processes and capacity limits, so that the group can converge.
func (r *region) removeFaults(t *testing.T) {
	t.Helper()
	check(t, r.Resume("g", nil))
	r.ec2.RestoreCapacity()
	for _, h := range must(r.Hooks("g", nil))(t) {
		check(t, r.DeleteHook("g", h.Name))
	}
	for _, m := range r.Members() {
		_ = r.Protect("g", []string{m.InstanceID}, false)
		switch m.State {
		case "Terminating:Retained", "Warmed:Terminating:Retained", "Warmed:Pending:Retained":
			must(r.TerminateMember([]string{m.InstanceID}, false))(t)
		}
	}
	pass(10 * time.Minute)
}

// After any sequence of actions every state change is an allowed one. In the end the group has its
// desired state, and no instance is left over at EC2.
func TestRandomOperationsKeepInvariants(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := autoscaling.Group{Desired: 2, Hooks: []autoscaling.Hook{up(), down()}, Retain: seed%3 == 0}
			if seed%2 == 0 {
				g = spotGroup(seed%4 == 0, up(), down())
			}
			inLiving(t, g, func(t *testing.T, r *region) {
				rng := rand.New(rand.NewPCG(seed, 7))
				var changes []string
				for range 150 {
					changes = append(changes, fmt.Sprintf("%s: %s", time.Now().Format("04:05.000"), r.chance(rng)))
					pass(time.Duration(rng.ExpFloat64() * float64(2*time.Second)))
				}
				detached := map[string]bool{}
				for _, c := range r.Trace() {
					detached[c.InstanceID] = c.To == autoscaling.Detached
				}
				r.removeFaults(t)
				for _, c := range r.Trace() {
					if !slices.Contains(strings.Split(allowed[string(c.From)], ", "), string(c.To)) {
						t.Errorf("%s went from %q to %q: %s", c.InstanceID, c.From, c.To, c.Cause)
					}
				}
				_, desired, _, _ := r.Sizes("g")
				pool := must(r.Pool("g"))(t)
				warm := 0
				if pool.MaxPrepared != nil {
					warm = max(pool.MinSize, *pool.MaxPrepared-desired, 0)
				}
				serving, idle := 0, 0
				for _, m := range r.Members() {
					in, _ := r.ec2.Instance(m.InstanceID)
					switch {
					case m.State == autoscaling.InService && in.State == ec2.Running:
						serving++
					case m.State == autoscaling.WarmedRunning || in.State == ec2.Stopped && strings.HasPrefix(string(m.State), "Warmed:"):
						idle++
					case m.State != autoscaling.Standby:
						t.Errorf("%s is %s, at EC2 %s, by %s", m.InstanceID, m.State, in.State, r.path(m.InstanceID))
					}
				}
				same(t, "serving and warm", []int{serving, idle}, []int{desired, warm})
				for _, in := range r.ec2.Instances() {
					if _, member := r.Member(in.ID); !member && !detached[in.ID] && in.State != ec2.Terminated {
						t.Errorf("%s was left behind %s, by %s", in.ID, in.State, r.path(in.ID))
					}
				}
				if t.Failed() {
					t.Log(strings.Join(changes, "\n"))
				}
			})
		})
	}
}
