package boot

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

// callTime is what a call to Auto Scaling may take, with connecting if that is needed.
const callTime = 15 * time.Second

// call makes a call to Auto Scaling, and notes how it went.
func (a *Agent) call(ctx context.Context, do func(context.Context, *AutoScaling) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if a.cloud == nil {
		c, err := a.o.Connect(ctx)
		if err != nil {
			err = fmt.Errorf("connecting to Auto Scaling: %w", err)
			a.talked(err)
			return err
		}
		a.cloud = &c
	}
	err := do(ctx, a.cloud)
	a.talked(err)
	return err
}

// talked sets the time of the next call by how the last one went.
func (a *Agent) talked(err error) {
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

// corroborate finds out whether the machine is in a group, where metadata has no target
// state for it. Its tags tell without a call, where metadata shows them.
func (a *Agent) corroborate(ctx context.Context) {
	in, known, err := a.inGroup(ctx)
	if err != nil {
		a.talked(err)
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

// describe asks for the state of the machine.
func (a *Agent) describe(ctx context.Context) {
	f := &a.facts
	_ = a.call(ctx, func(ctx context.Context, c *AutoScaling) error { // what is wrong is noted
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

// listHooks asks for the hooks of the group. Where that is not permitted, and the hooks
// to answer are named in full, these are taken to be there.
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

// heartbeat extends hooks. That it does is written down before.
func (a *Agent) heartbeat(ctx context.Context, s Step) {
	f := &a.facts
	f.Journal.Leg.Beat = a.o.Clock.Wall()
	a.save(ctx)
	before := f.Talk
	for _, hook := range s.Hooks {
		switch err := a.send(ctx, hook, lifecycle.Heartbeat, ""); lifecycle.OutcomeOf(err) {
		case lifecycle.NoAction:
			f.State = State{} // it may have moved
		case lifecycle.Denied:
			before.Told, f.Talk = f.Talk.Told, before // a result may be permitted all the same
			logr.FromContextOrDiscard(ctx).Info("is not permitted to extend a hook", "hook", hook, "error", err.Error())
		}
	}
}

// complete sends a result to hooks, if all is still as it was when that was decided.
func (a *Agent) complete(ctx context.Context, s Step) {
	f := &a.facts
	if f.Journal.Leg.Goal != Serve {
		a.o.Sync() // the machine may be stopped at once
	}
	if !a.stillSo(ctx, s) {
		return
	}
	var failure error
	tries := f.Talk.Tries
	for _, hook := range s.Hooks {
		err := a.send(ctx, hook, lifecycle.Complete, s.Result)
		if err == nil {
			logr.FromContextOrDiscard(ctx).Info("answered a lifecycle hook", "hook", hook, "group", f.State.Group, "result", s.Result)
		}
		if failure == nil || cloud.IsNoAction(failure) {
			failure = err
		}
	}
	f.Talk.Look, f.Talk.Tries = time.Time{}, tries
	a.talked(failure)
	if failure == nil {
		f.Talk.Due = a.o.Clock.Wall().Add(a.backoff(tries))
	}
}

// send calls a hook, and notes what came of it.
func (a *Agent) send(ctx context.Context, hook string, do lifecycle.Verb, result cloud.Result) error {
	f := &a.facts
	action := cloud.Action{Group: f.State.Group, Hook: hook, InstanceID: f.Instance}
	err := a.call(ctx, func(ctx context.Context, c *AutoScaling) error {
		if do == lifecycle.Heartbeat {
			return c.Heartbeat(ctx, action)
		}
		return c.Complete(ctx, action, result)
	})
	told := maps.Clone(f.Talk.Told)
	if told == nil {
		told = map[string]lifecycle.Told{}
	}
	told[hook] = told[hook].After(a.o.Clock.Wall(), do, err)
	f.Talk.Told = told
	return err
}

// stillSo looks once more at what an answer was decided on. An answer names no firing of a
// hook, so that a late one would hit the next.
func (a *Agent) stillSo(ctx context.Context, s Step) bool {
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

// stillReady reads the node once more. An API server that is away takes nothing back.
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
