package bootagent

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// callTime is the time limit of a call to Auto Scaling, including the connection.
const callTime = 15 * time.Second

// call makes a call to Auto Scaling, and records its result.
func (a *Agent) call(ctx context.Context, do func(context.Context, *AutoScaling) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if a.cloud == nil {
		c, err := a.o.Connect(ctx)
		if err != nil {
			err = fmt.Errorf("connecting to Auto Scaling: %w", err)
			a.recordCall(err)
			return err
		}
		a.cloud = &c
	}
	err := do(ctx, a.cloud)
	a.recordCall(err)
	return err
}

// recordCall sets the time of the next call from the result of the last one.
func (a *Agent) recordCall(err error) {
	t, now := &a.facts.Talk, a.o.Clock.Wall()
	t.Trouble = ""
	if err == nil {
		t.Denied = ""
		return
	}
	t.Tries++
	t.Trouble, t.Due = err.Error(), now.Add(a.backoff(t.Tries))
	switch lifecycle.OutcomeOf(err) {
	case lifecycle.Denied:
		t.Trouble, t.Denied, t.Due = "", err.Error(), now.Add(a.vary(lifecycle.DeniedRetry))
	case lifecycle.NoAction:
		t.Trouble = "Auto Scaling says that no action is pending, and is asked again while the state says that one is"
	case lifecycle.Busy:
		t.Trouble = "Auto Scaling is busy, and is asked again: " + err.Error()
	}
}

// corroborate finds out whether the machine is in a group, if metadata has no target state. If
// metadata has its tags, no call is necessary.
func (a *Agent) corroborate(ctx context.Context) {
	in, known, err := a.inGroup(ctx)
	if err != nil {
		a.recordCall(err)
		return
	}
	if known {
		a.facts.Member = MemberOfNone
		if in {
			a.facts.Member = MemberIn
		}
		return
	}
	a.describe(ctx)
	if !a.facts.State.At.IsZero() && a.facts.State.Group == "" {
		a.facts.Member = MemberOfNone
	}
}

// describe reads the state of the machine.
func (a *Agent) describe(ctx context.Context) {
	f := &a.facts
	_ = a.call(ctx, func(ctx context.Context, c *AutoScaling) error { // the error is recorded
		s, err := c.Describe(ctx, f.Instance)
		if err != nil {
			return err
		}
		s.At = a.o.Clock.Wall()
		if s.Value != f.State.Value {
			f.Talk.Tries = 0
		}
		f.State = s
		f.Talk.Tries++
		f.Talk.Look = s.At.Add(a.backoff(f.Talk.Tries))
		if s.Group != "" {
			f.Member = MemberIn
		}
		return nil
	})
}

// listHooks reads the hooks of the group. If that is not permitted, and the hooks to complete
// are named exactly, these are assumed.
func (a *Agent) listHooks(ctx context.Context) {
	f := &a.facts
	err := a.call(ctx, func(ctx context.Context, c *AutoScaling) error {
		all, err := c.Hooks(ctx, f.State.Group)
		if err != nil {
			return err
		}
		f.Hooks = Hooks{At: a.o.Clock.Wall(), All: lifecycle.Owned(all, nil, a.o.Settings.Hooks)}
		return nil
	})
	if assumed := lifecycle.Assumed(a.o.Settings.Hooks); cloud.IsDenied(err) && assumed != nil {
		f.Hooks = Hooks{At: a.o.Clock.Wall(), All: assumed}
		f.Talk.Denied, f.Talk.Due = "", time.Time{}
	}
}

// heartbeat sends heartbeats for hooks. It writes the intent first.
func (a *Agent) heartbeat(ctx context.Context, s Step) {
	f := &a.facts
	f.Journal.Leg.Beat = a.o.Clock.Wall()
	a.save(ctx)
	before := f.Talk
	for _, hook := range s.Hooks {
		switch err := a.send(ctx, hook, lifecycle.Heartbeat, ""); lifecycle.OutcomeOf(err) {
		case lifecycle.NoAction:
			f.State = State{} // it may have changed
		case lifecycle.Denied:
			before.Calls, f.Talk = f.Talk.Calls, before // a result may be permitted although a heartbeat is not
			logr.FromContextOrDiscard(ctx).Info("not permitted to send a heartbeat for a hook", "hook", hook, "error", err.Error())
		}
	}
}

// complete sends a result to hooks, if the facts of the decision still hold.
func (a *Agent) complete(ctx context.Context, s Step) {
	f := &a.facts
	if f.Journal.Leg.Goal != Serve {
		a.o.Sync() // the machine may be stopped immediately
	}
	if !a.isUnchanged(ctx, s) {
		return
	}
	var failure error
	tries := f.Talk.Tries
	for _, hook := range s.Hooks {
		err := a.send(ctx, hook, lifecycle.Complete, s.Result)
		if err == nil {
			logr.FromContextOrDiscard(ctx).Info("completed a lifecycle hook", "hook", hook, "group", f.State.Group, "result", s.Result)
		}
		if failure == nil || cloud.IsNoAction(failure) {
			failure = err
		}
	}
	f.Talk.Look, f.Talk.Tries = time.Time{}, tries
	a.recordCall(failure)
	if failure == nil {
		f.Talk.Due = a.o.Clock.Wall().Add(a.backoff(tries))
	}
}

// send calls a hook, and records the result.
func (a *Agent) send(ctx context.Context, hook string, do lifecycle.Verb, result cloud.Result) error {
	f := &a.facts
	action := cloud.Action{Group: f.State.Group, Hook: hook, InstanceID: f.Instance}
	err := a.call(ctx, func(ctx context.Context, c *AutoScaling) error {
		if do == lifecycle.Heartbeat {
			return c.Heartbeat(ctx, action)
		}
		return c.Complete(ctx, action, result)
	})
	calls := maps.Clone(f.Talk.Calls)
	if calls == nil {
		calls = map[string]lifecycle.CallRecord{}
	}
	calls[hook] = calls[hook].After(a.o.Clock.Wall(), do, err)
	f.Talk.Calls = calls
	return err
}

// isUnchanged reads the facts of an answer once more. An answer by instance id names no firing, so a
// late one would complete the next.
func (a *Agent) isUnchanged(ctx context.Context, s Step) bool {
	f := &a.facts
	a.readTarget(ctx)
	boot, err := a.o.BootID()
	if err == nil && strings.TrimSpace(boot) != f.Boot {
		return false
	}
	if f.Journal.Leg.Goal == Serve && s.Result == cloud.Continue && !a.stillReady(ctx) {
		return false
	}
	if a.wakeIfSuspended(ctx) {
		return false
	}
	now := a.o.Clock.Wall()
	goal, _ := aim(*f, now)
	return goal == f.Journal.Leg.Goal && now.Sub(f.State.At) <= freshState
}

// stillReady reads the node once more. An unreachable API server does not change the result.
func (a *Agent) stillReady(ctx context.Context) bool {
	f := &a.facts
	n := a.o.Node(ctx, f.Instance, f.Journal.Node)
	n.At = a.o.Clock.Wall()
	if n.Trouble != "" {
		return true
	}
	f.Node = n
	return n.readySince(f.Journal.Gate.At)
}
