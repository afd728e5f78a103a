package autoscaling_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Subscribers of EC2 see the instances of groups as any others.
func TestSubscribersSeeGroupInstances(t *testing.T) {
	inLiving(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		var mu sync.Mutex
		var seen []string
		var first ec2.Instance
		cancel := r.ec2.Subscribe(func(c ec2.Change) {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) == 0 {
				first = c.Instance
			}
			seen = append(seen, string(c.What))
		})
		defer cancel()
		check(t, r.PutPool("g", *fixed(1, "")))
		settled()
		check(t, r.PutPool("g", *fixed(0, "")))
		check(t, r.SetDesired("g", 1, false))
		settled()
		mu.Lock()
		defer mu.Unlock()
		same(t, "changes", strings.Join(seen, " "), "Launched Running ShuttingDown PowerOff Stopped Started Running")
		same(t, "the first one", []any{first.State, first.UserData != "", first.Tags["aws:autoscaling:groupName"], first.Tags["aws:ec2launchtemplate:version"]}, []any{ec2.Pending, true, "g", "1"})
	})
}

// Each execution of a hook has its own token; the token of an earlier execution is rejected.
func TestActionTokenIdentifiesOneHookExecution(t *testing.T) {
	inLiving(t, autoscaling.Group{WarmPool: fixed(1, ""), Hooks: []autoscaling.Hook{up()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		id := r.in(autoscaling.WarmedPending + ":Wait")[0]
		first := r.Actions(id)[0].Ref
		check(t, r.Complete(first, autoscaling.Continue))
		settled()
		check(t, r.SetDesired("g", 1, false))
		pass(2 * time.Second)
		same(t, "held again", r.at(id), "Pending:Wait > InService")
		if err := r.Complete(first, autoscaling.Continue); !contains(err, "No active Lifecycle Action found with token") {
			t.Errorf("the old token: %v", err)
		}
		// A completion that names the instance applies to the execution that is active now.
		check(t, r.Complete(autoscaling.Ref{Group: "g", Hook: "up", InstanceID: id}, autoscaling.Continue))
	})
}

// The events of an instance over its whole life.
func TestLifecycleEventsAreSent(t *testing.T) {
	inLiving(t, autoscaling.Group{WarmPool: fixed(1, ""), Hooks: []autoscaling.Hook{up(), down()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		r.answer(t, autoscaling.WarmedPending+":Wait", autoscaling.Continue)
		settled()
		check(t, r.PutPool("g", *fixed(0, "")))
		check(t, r.SetDesired("g", 1, false))
		pass(2 * time.Second)
		r.answer(t, autoscaling.Pending+":Wait", autoscaling.Continue)
		settled()
		check(t, r.SetDesired("g", 0, false))
		pass(2 * time.Second)
		r.answer(t, autoscaling.Terminating+":Wait", autoscaling.Continue)
		settled()
		same(t, "events", r.events(), []string{
			"launch Lifecycle Action|up|EC2>WarmPool", "Launch Successful||EC2>WarmPool",
			"launch Lifecycle Action|up|WarmPool>AutoScalingGroup", "Launch Successful||WarmPool>AutoScalingGroup",
			"terminate Lifecycle Action|down|AutoScalingGroup>EC2", "Terminate Successful||AutoScalingGroup>EC2",
		})
		var statuses []string
		for _, a := range r.Activities("g") {
			statuses = append(statuses, a.Status+" "+strings.Fields(a.Description)[0])
		}
		slices.Reverse(statuses)
		same(t, "activities", statuses, []string{"Successful Launching", "Successful Launching", "Successful Terminating"})
	})
}

// An instance that terminates during its launch is replaced.
func TestInstanceEndedDuringLaunchIsReplaced(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 1, Hooks: []autoscaling.Hook{up()}}, func(t *testing.T, r *region) {
		pass(2 * time.Second)
		id := r.in(autoscaling.Pending + ":Wait")[0]
		must(r.ec2.Terminate([]string{id}))(t)
		pass(5 * time.Second)
		same(t, "another", []string{r.at(id), r.states()}, []string{"gone", "1 Pending:Wait"})
		same(t, "event", r.events()[1], "Launch Unsuccessful||EC2>AutoScalingGroup")
	})
}

func TestSizeChangesLimitDesiredCapacity(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 2}, func(t *testing.T, r *region) {
		check(t, r.Update("g", func(g *autoscaling.Group) error { g.Min = 3; return nil }))
		_, up, _, _ := r.Sizes("g")
		check(t, r.Update("g", func(g *autoscaling.Group) error { g.Min, g.Max = 0, 1; return nil }))
		_, down, _, _ := r.Sizes("g")
		same(t, "desired", []int{up, down}, []int{3, 1})
		for what, change := range map[string]func(*autoscaling.Group) error{
			"a template that is not there": func(g *autoscaling.Group) error { g.Template = ec2.TemplateRef{Name: "none"}; return nil },
			"sizes that cross":             func(g *autoscaling.Group) error { g.Min = 2; return nil },
			"too many":                     func(g *autoscaling.Group) error { g.Desired = 2; return nil },
			"a zone that is not there":     func(g *autoscaling.Group) error { g.Zones = []string{"eu-west-1z"}; return nil },
		} {
			if r.Update("g", change) == nil {
				t.Errorf("%s was taken", what)
			}
		}
		settled()
		same(t, "in the end", r.states(), "1 InService")
	})
}

// Load balancers deregister instances before hooks are notified.
func TestDeregistrationTakesConfiguredTime(t *testing.T) {
	inLiving(t, autoscaling.Group{Desired: 2, Hooks: []autoscaling.Hook{down()}}, func(t *testing.T, r *region) {
		r.SetTiming(autoscaling.Timing{Deregister: 30 * time.Second})
		settled()
		leaves, stays := r.in(autoscaling.InService)[0], r.in(autoscaling.InService)[1]
		must(r.TerminateMember([]string{leaves}, true))(t)
		must(r.DetachMembers("g", []string{stays}, true))(t)
		pass(29 * time.Second)
		same(t, "at first", []string{r.at(leaves), r.at(stays)}, []string{"Terminating > Terminated", "Detaching > Detached"})
		pass(2 * time.Second)
		same(t, "then", []string{r.at(leaves), r.at(stays)}, []string{"Terminating:Wait > Terminated", "gone"})
	})
}
