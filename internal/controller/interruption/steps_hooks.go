package interruption

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// ownersTimeout is for how long pods wait until their owners are read. Then they are evicted
// instead of surged.
const ownersTimeout = 10 * time.Second

// gates are what all pods of the node wait for.
func (c *Controller) gates(f *facts, d policy.Decision) []drain.Gate {
	var gates []drain.Gate
	if hold := record.Hold(f.in, f.now); hold != nil {
		gates = append(gates, record.HoldGate(hold))
	}
	if f.pause != nil {
		gates = append(gates, record.PauseGate(f.pause))
	}
	if f.barrierWait > 0 {
		return append(gates, drain.Gate{Why: waitsAtBarrier}) // the other gates are not read yet
	}
	if gate, waits := f.replacement.Gate(d); waits {
		gates = append(gates, gate)
	}
	if f.ownersAwaited() {
		gates = append(gates, drain.Gate{Why: "what controls the pods is being read", Until: f.ownersUntil()})
	}
	if gate, waits := c.deregistrationGate(f, d); waits {
		gates = append(gates, gate)
	}
	if gate, waits := c.hookGate(f, d); waits {
		gates = append(gates, gate)
	}
	return gates
}

func (f *facts) ownersAwaited() bool {
	return f.surges && !f.ownersKnown && f.now.Before(f.ownersUntil())
}

// ownersUntil is until when pods wait for their owners: ownersTimeout after this process
// first read them, also after some restarts of the process.
func (f *facts) ownersUntil() time.Time {
	until := laterOf(f.begunAt(), f.ownersSince).Add(ownersTimeout)
	if last := f.begunAt().Add(3 * ownersTimeout); last.Before(until) {
		return last
	}
	return until
}

// begunAt is when the node was cordoned; now: it was not.
func (f *facts) begunAt() time.Time {
	if at := record.Begun(&f.was); !at.IsZero() {
		return at
	}
	return f.now
}

// hookGate is the gate of the first hook that has to complete before the drain, if any.
func (c *Controller) hookGate(f *facts, d policy.Decision) (drain.Gate, bool) {
	hooks := c.hooksOf(f, d)
	for i := range hooks {
		h := &hooks[i]
		if h.When != v1beta1.HookBeforeDrain {
			continue
		}
		if gate, waits := record.HookGate(h, record.Hook(f.drain().Hooks, h.Name), record.GoAhead(f.in, f.now), f.nodeName); waits {
			return gate, true
		}
	}
	return drain.Gate{}, false
}

// runHooksBefore runs the hooks that policy wants before the drain. Pods wait for them by a
// gate in the plan, which opens at their last call.
func runHooksBefore(ctx context.Context, p *pass) (bool, error) {
	if p.plan.Empty() {
		return true, nil // nothing to prepare for
	}
	p.endDeregistration()
	_, err := p.hooks(ctx, v1beta1.HookBeforeDrain)
	return err == nil, err
}

// hookRetry is when to retry hooks after an error.
const hookRetry = 2 * time.Second

// runHooksAfter waits for the hooks that policy wants after the drain, until the end of the
// interruption. A node that lives then is restored, and not ended while hooks are running.
func runHooksAfter(ctx context.Context, p *pass) (bool, error) {
	if !p.isDone() {
		return true, nil // the pods stay, and so does the node
	}
	end := p.end()
	if p.facts.now.Before(end) {
		done, err := p.hooks(ctx, v1beta1.HookAfterDrain)
		if err == nil && !done {
			p.outcome.requeueAt(end)
		}
		return done, err
	}
	status, goAhead := p.Drain().Hooks, record.GoAhead(p.facts.in, p.facts.now)
	if hooks.Awaited(p.hooksOf(p.facts, p.decision), v1beta1.HookAfterDrain, status, p.update.Subject(), goAhead) == "" {
		return true, nil
	}
	return false, p.walk(ctx, []step{deleteNode, awaitLifecycleHooks, terminateDetached, awaitInstanceGone, restoreNode, complete})
}

// hooksOf are the hooks that run or that pods wait for. Once the node is gone a failed hook
// holds nothing.
func (c *Controller) hooksOf(f *facts, d policy.Decision) []v1beta1.Hook {
	if c.HookRunner == nil || d.InstanceGone || f.node == nil && record.Begun(&f.was).IsZero() {
		return nil // another instance may have a node of that name now
	}
	if f.node != nil {
		return d.Hooks
	}
	hooks := slices.Clone(d.Hooks)
	for i := range hooks {
		hooks[i].OnFailure = v1beta1.HookContinue
	}
	return hooks
}

// hooks takes the hooks of a time one step further and reports whether they are done. A
// failure to run them is no error of the pass.
func (p *pass) hooks(ctx context.Context, when v1beta1.HookTime) (bool, error) {
	hooks := p.hooksOf(p.facts, p.decision)
	if len(hooks) == 0 {
		return true, nil
	}
	if record.Begun(&p.facts.was).IsZero() { // the start time identifies the tries of this drain, so it is written first
		if err := p.Checkpoint(ctx); err != nil {
			return false, err
		}
	}
	name := p.facts.in.Name
	if at, _, why := p.backoff.waitsFor(name, hooksItem, time.Time{}); !at.IsZero() {
		p.outcome.wait(at, "waits: "+why)
		return false, nil
	}
	out, err := p.HookRunner.Hooks(ctx, runner.HookRun{
		Hooks: hooks, When: when, Status: p.Drain().Hooks,
		Subject: p.update.Subject(), Now: p.facts.now, GoAhead: record.GoAhead(p.facts.in, p.facts.now),
	})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err() // the process ends
	case err != nil: // the pass must not miss a last call because of it
		log.FromContext(ctx).Error(err, "running hooks")
		p.backoff.itemFailed(name, hooksItem, hookRetry, "", out.Waits)
		p.outcome.wait(p.facts.now.Add(hookRetry), "waits: "+out.Waits)
		return false, nil
	}
	p.backoff.itemSucceeded(name, hooksItem)
	p.outcome.Hooks = out.Status
	for _, h := range out.Happened {
		p.Record(h.Reason, h.Message)
	}
	if !out.Done {
		p.outcome.wait(out.Until, "waits: "+out.Waits)
	}
	return out.Done, nil
}

// heldUntil is when a person's hold ends or has ended; now for a hold without an end; zero:
// there was none.
func (f *facts) heldUntil() time.Time {
	hold := record.Hold(f.in, f.now)
	switch {
	case hold == nil:
		return record.Released(f.in, f.now)
	case hold.Until == nil:
		return f.now
	}
	return hold.Until.Time
}
