package boot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/lifecycle"
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
	var denied *cloud.DeniedError
	switch {
	case errors.As(err, &denied):
		t.Denied = err.Error()
		t.Due = now.Add(a.vary(deniedPause))
		return
	case cloud.IsNoAction(err):
		t.Trouble = "Auto Scaling says that no action is pending, and is asked again while the state says that one is"
	case cloud.IsBusy(err):
		t.Trouble = "Auto Scaling is busy, and is asked again: " + err.Error()
	default:
		t.Trouble = err.Error()
	}
	t.Due = now.Add(pause(t.Tries, a.o.Dice()))
	t.Tries++
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
		f.Talk.Look = s.At.Add(pause(f.Talk.Tries, a.o.Dice()))
		f.Talk.Tries++
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
		f.Hooks = Hooks{At: a.o.Clock.Wall()}
		for _, h := range all {
			if lifecycle.IsOwn(h.Name, nil, a.o.Settings.Hooks) {
				f.Hooks.Own = append(f.Hooks.Own, h)
			} else {
				f.Hooks.Others = append(f.Hooks.Others, h)
			}
		}
		return nil
	})
	if guessed := guess(a.o.Settings.Hooks); cloud.IsDenied(err) && guessed != nil {
		f.Hooks = Hooks{At: a.o.Clock.Wall(), Own: guessed}
		f.Talk.Denied, f.Talk.Due = "", time.Time{}
	}
}

// heartbeat extends hooks. One that fails is due again at the next time.
func (a *Agent) heartbeat(ctx context.Context, s Step) {
	f := &a.facts
	f.Journal.Leg.Beat = a.o.Clock.Wall()
	a.save(ctx)
	due := f.Talk
	for _, h := range s.Hooks {
		err := a.call(ctx, func(ctx context.Context, c *AutoScaling) error {
			return c.Heartbeat(ctx, a.action(h))
		})
		switch {
		case cloud.IsNoAction(err):
			f.State = State{} // it may have moved
		case cloud.IsDenied(err):
			f.Talk = due // to extend is not to answer
			logr.FromContextOrDiscard(ctx).Info("is not permitted to extend a hook", "hook", h.Name, "error", err.Error())
		case err != nil:
			f.Journal.Leg.Beat = time.Time{}
		}
	}
}

// complete answers hooks, if all is still as it was when that was decided.
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
	for _, h := range s.Hooks {
		err := a.call(ctx, func(ctx context.Context, c *AutoScaling) error {
			return c.Complete(ctx, a.action(h), s.Result)
		})
		if err == nil {
			f.Talk.Taken = true
			logr.FromContextOrDiscard(ctx).Info("answered a lifecycle hook", "hook", h.Name, "group", f.State.Group, "result", s.Result)
		}
		if failure == nil || cloud.IsNoAction(failure) {
			failure = err
		}
	}
	now := a.o.Clock.Wall()
	f.Talk.Sent, f.Talk.Look = now, time.Time{}
	f.Talk.Tries = tries
	a.talked(failure)
	if failure == nil {
		f.Talk.Due = now.Add(pause(tries-1, a.o.Dice()))
	}
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

func (a *Agent) action(h Hook) cloud.Action {
	return cloud.Action{Group: a.facts.State.Group, Hook: h.Name, InstanceID: a.facts.Instance}
}
