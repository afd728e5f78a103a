package autoscaling_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// region is EC2 and Auto Scaling without other services, in virtual time.
type region struct {
	*autoscaling.State
	ec2 *ec2.State

	mu       sync.Mutex
	recorded []string
}

// inRegion runs a test in a region with one group, named g, whose pool keeps instances stopped.
func inRegion(t *testing.T, g autoscaling.Group, test func(t *testing.T, r *region)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scope := wire.Scope{Account: "210987654321", Region: "eu-west-1"}
		r := &region{ec2: ec2.New(ec2.Options{Scope: scope})}
		r.State = autoscaling.New(autoscaling.Options{
			Scope: scope, EC2: r.ec2, Emit: r.recordEvent,
			Deliver: func(string, string, sqs.Sender) error { return errors.New("no such queue") },
		})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.ec2.Run(ctx) })
		running.Go(func() { r.Run(ctx) })
		g.Name = "g"
		check(t, r.CreateGroup(g))
		test(t, r)
		stop()
		running.Wait()
	})
}

// recordEvent records a short form of an event.
func (r *region) recordEvent(e events.Event) {
	var detail struct{ Origin, Destination, LifecycleHookName string }
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		detail.Origin = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line := strings.Join([]string{strings.TrimPrefix(e.DetailType, "EC2 Instance"), detail.LifecycleHookName, detail.Origin + ">" + detail.Destination}, "|")
	r.recorded = append(r.recorded, strings.TrimLeft(line, " -"))
}

func (r *region) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recorded)
}

// pass advances virtual time and waits until all goroutines are blocked.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *region) member(t *testing.T, state autoscaling.LifecycleState) string {
	t.Helper()
	made := must(r.ec2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1}))(t)
	pass(time.Second)
	check(t, r.Attach("g", made[0].ID, state))
	return made[0].ID
}

// at is the state and target of a member.
func (r *region) at(id string) string {
	m, ok := r.Member(id)
	if !ok {
		return "gone"
	}
	return string(m.State + " > " + m.Target)
}

func (r *region) hook(t *testing.T, name string, tr autoscaling.LifecycleTransition, result autoscaling.Result) {
	t.Helper()
	check(t, r.PutHook(autoscaling.Hook{Name: name, Group: "g", Transition: tr, DefaultResult: result, Heartbeat: time.Minute}))
}

func TestTransitions(t *testing.T) {
	for _, tc := range []struct {
		transition autoscaling.Transition
		from       autoscaling.LifecycleState
		states     []string // during the transition, then 5 s after the completion
		recorded   []string
	}{
		{autoscaling.ColdStart, autoscaling.Pending, []string{"Pending:Wait > InService", "InService > InService"},
			[]string{"launch Lifecycle Action|up|EC2>AutoScalingGroup", "Launch Successful||EC2>AutoScalingGroup"}},
		{autoscaling.IntoPool, autoscaling.WarmedPending, []string{"Warmed:Pending:Wait > Warmed:Stopped", "Warmed:Stopped > Warmed:Stopped"},
			[]string{"launch Lifecycle Action|up|EC2>WarmPool", "Launch Successful||EC2>WarmPool"}},
		{autoscaling.OutOfPool, autoscaling.WarmedStopped, []string{"Pending:Wait > InService", "InService > InService"},
			[]string{"launch Lifecycle Action|up|WarmPool>AutoScalingGroup", "Launch Successful||WarmPool>AutoScalingGroup"}},
		{autoscaling.ScaleIn, autoscaling.InService, []string{"Terminating:Wait > Terminated", "gone"},
			[]string{"terminate Lifecycle Action|down|AutoScalingGroup>EC2", "Terminate Successful||AutoScalingGroup>EC2"}},
		{autoscaling.ReturnToPool, autoscaling.InService, []string{"Warmed:Pending:Wait > Warmed:Stopped", "Warmed:Stopped > Warmed:Stopped"},
			[]string{"terminate Lifecycle Action|down|AutoScalingGroup>WarmPool", "Terminate Successful||AutoScalingGroup>WarmPool"}},
		{autoscaling.PoolShrink, autoscaling.WarmedStopped, []string{"Warmed:Terminating:Wait > Warmed:Terminated", "gone"},
			[]string{"terminate Lifecycle Action|down|WarmPool>EC2", "Terminate Successful||WarmPool>EC2"}},
	} {
		t.Run(string(tc.transition), func(t *testing.T) {
			inRegion(t, autoscaling.Group{}, func(t *testing.T, r *region) {
				r.hook(t, "up", autoscaling.Launching, autoscaling.Abandon)
				r.hook(t, "down", autoscaling.Leaving, autoscaling.Continue)
				id := r.member(t, tc.from)
				check(t, r.Send(id, tc.transition, "of a test."))
				on := r.at(id)
				check(t, r.Complete(r.Actions(id)[0].Ref, autoscaling.Continue))
				pass(5 * time.Second)
				same(t, "states", []string{on, r.at(id)}, tc.states)
				same(t, "events", r.events(), tc.recorded)
			})
		})
	}
}

func TestTargetStateIsSetBeforeHookExists(t *testing.T) {
	inRegion(t, autoscaling.Group{DeregistrationDelay: time.Minute}, func(t *testing.T, r *region) {
		r.hook(t, "down", autoscaling.Leaving, autoscaling.Continue)
		id := r.member(t, autoscaling.InService)
		check(t, r.Send(id, autoscaling.ScaleIn, ""))
		same(t, "at once", []any{r.at(id), r.TargetState(id), len(r.events())}, []any{"Terminating > Terminated", "Terminated", 0})
		pass(61 * time.Second)
		same(t, "later", []any{r.at(id), len(r.events())}, []any{"Terminating:Wait > Terminated", 1})
	})
}

func TestHeartbeatExtendsTimeout(t *testing.T) {
	inRegion(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		r.hook(t, "down", autoscaling.Leaving, autoscaling.Continue)
		id := r.member(t, autoscaling.InService)
		check(t, r.Send(id, autoscaling.ScaleIn, ""))
		ref := r.Actions(id)[0].Ref
		// An action lasts at most a hundred heartbeat timeouts.
		began := time.Now()
		for range 120 {
			if err := r.Heartbeat(ref); err != nil {
				break
			}
			pass(55 * time.Second)
			if r.at(id) == "gone" {
				break
			}
		}
		same(t, "in the end", []any{r.at(id), time.Since(began) / time.Minute}, []any{"gone", 100 * time.Minute / time.Minute})
		in, _ := r.ec2.Instance(id)
		same(t, "at EC2", in.StateReason.Code, "Client.UserInitiatedShutdown")

		id = r.member(t, autoscaling.InService)
		check(t, r.Send(id, autoscaling.ScaleIn, ""))
		pass(59 * time.Second)
		before := r.at(id)
		pass(5 * time.Second)
		same(t, "with no heartbeat", []string{before, r.at(id)}, []string{"Terminating:Wait > Terminated", "gone"})
	})
}

func TestSeveralHooks(t *testing.T) {
	inRegion(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		r.hook(t, "a", autoscaling.Leaving, autoscaling.Continue)
		r.hook(t, "b", autoscaling.Leaving, autoscaling.Continue)
		id := r.member(t, autoscaling.InService)
		check(t, r.Send(id, autoscaling.ScaleIn, ""))
		actions := r.Actions(id)
		same(t, "actions", []any{len(actions), actions[0].Hook, actions[1].Hook}, []any{2, "a", "b"})
		check(t, r.Complete(autoscaling.Ref{Group: "g", Hook: "a", InstanceID: id}, autoscaling.Continue))
		same(t, "after one", r.at(id), "Terminating:Wait > Terminated")
		if err := r.Complete(autoscaling.Ref{Group: "g", Hook: "a", InstanceID: id}, autoscaling.Continue); err == nil {
			t.Error("an action was ended twice")
		}
		check(t, r.Complete(actions[1].Ref, autoscaling.Continue))
		same(t, "after both", r.at(id), "Terminating:Proceed > Terminated")

		id = r.member(t, autoscaling.InService)
		check(t, r.Send(id, autoscaling.ScaleIn, ""))
		check(t, r.Complete(r.Actions(id)[0].Ref, autoscaling.Abandon))
		same(t, "one abandoned", []any{r.at(id), len(r.Actions(id))}, []any{"Terminating:Proceed > Terminated", 0})
	})
}

func TestAbandonedLaunchEndsTheInstance(t *testing.T) {
	inRegion(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		r.hook(t, "up", autoscaling.Launching, autoscaling.Abandon)
		r.hook(t, "down", autoscaling.Leaving, autoscaling.Continue)
		id := r.member(t, autoscaling.Pending)
		check(t, r.Send(id, autoscaling.ColdStart, ""))
		pass(time.Minute)
		same(t, "timed out", r.at(id), "Terminating:Proceed > Terminated")
		pass(5 * time.Second)
		same(t, "in the end", r.at(id), "gone")
		same(t, "events", r.events(), []string{
			"launch Lifecycle Action|up|EC2>AutoScalingGroup", "Launch Unsuccessful||EC2>AutoScalingGroup", "Terminate Successful||AutoScalingGroup>EC2",
		})
	})
}

// No hook holds an instance that EC2 terminates, and a completion comes too late then.
func TestInstanceTerminatedDuringHook(t *testing.T) {
	inRegion(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		r.hook(t, "down", autoscaling.Leaving, autoscaling.Continue)
		id, idle := r.member(t, autoscaling.InService), r.member(t, autoscaling.InService)
		check(t, r.Send(id, autoscaling.ScaleIn, ""))
		ref := r.Actions(id)[0].Ref
		must(r.ec2.Terminate([]string{id, idle}))(t)
		pass(5 * time.Second)
		same(t, "members", []string{r.at(id), r.at(idle)}, []string{"gone", "gone"})
		if err := r.Complete(ref, autoscaling.Continue); err == nil || !strings.Contains(err.Error(), "No active Lifecycle Action found with token") {
			t.Errorf("the answer was taken: %v", err)
		}
	})
}

func TestInvalidGroupsAreRejected(t *testing.T) {
	inRegion(t, autoscaling.Group{}, func(t *testing.T, r *region) {
		id := r.member(t, autoscaling.InService)
		for what, err := range map[string]error{
			"a group twice":                       r.CreateGroup(autoscaling.Group{Name: "g"}),
			"an unknown group":                    r.Attach("none", id, autoscaling.InService),
			"an unknown instance":                 r.Attach("g", "i-0123456789abcdef0", autoscaling.InService),
			"a hook of no group":                  r.PutHook(autoscaling.Hook{Name: "h", Group: "none", Transition: autoscaling.Leaving}),
			"a hook of no transition":             r.PutHook(autoscaling.Hook{Name: "h", Group: "g"}),
			"a hook with a dead target":           r.PutHook(autoscaling.Hook{Name: "h", Group: "g", Transition: autoscaling.Leaving, NotificationTarget: "arn:aws:sqs:eu-west-1:1:x"}),
			"a hook with a topic":                 r.PutHook(autoscaling.Hook{Name: "h", Group: "g", Transition: autoscaling.Leaving, NotificationTarget: "arn:aws:sns:eu-west-1:1:x"}),
			"an unknown transition":               r.Send(id, "round trip", ""),
			"a transition of an unknown instance": r.Send("i-0123456789abcdef0", autoscaling.ScaleIn, ""),
		} {
			if err == nil {
				t.Errorf("%s was taken", what)
			}
		}
		for n := range 51 {
			err := r.PutHook(autoscaling.Hook{Name: string(rune('A' + n)), Group: "g", Transition: autoscaling.Leaving})
			if (err != nil) != (n == 50) {
				t.Errorf("hook %d: %v", n+1, err)
			}
		}
		check(t, r.PutHook(autoscaling.Hook{Name: "A", Group: "g", Transition: autoscaling.Launching}))
		r.Detach(id)
		same(t, "after detaching", r.at(id), "gone")
	})
}
