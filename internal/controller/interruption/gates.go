package interruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/errand"
	"github.com/lifeboat-dev/lifeboat/internal/hook"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// ownersPatience is for how long pods wait for what controls them to be read.
// Without it they are evicted rather than surged.
const ownersPatience = 10 * time.Second

// gates are what all pods wait for.
func (c *Controller) gates(f *facts, d policy.Decision) []drain.Gate {
	var gates []drain.Gate
	if hold := record.Hold(f.in, f.now); hold != nil {
		gates = append(gates, record.HoldGate(hold))
	}
	if gate, waits := f.replacementGate(d); waits {
		gates = append(gates, gate)
	}
	if f.ownersAwaited() {
		gates = append(gates, drain.Gate{Why: "what controls the pods is being read", Until: f.ownersUntil()})
	}
	if gate, waits := c.hookGate(f, d); waits {
		gates = append(gates, gate)
	}
	return gates
}

func (f *facts) ownersAwaited() bool {
	return f.surges && !f.ownersKnown && f.now.Before(f.ownersUntil())
}

// ownersUntil is until when pods wait for their owners to be read: ownersPatience
// after this process first asked. Restarts of the process do not extend it for ever.
func (f *facts) ownersUntil() time.Time {
	until := laterOf(f.begunAt(), f.ownersSince).Add(ownersPatience)
	if last := f.begunAt().Add(3 * ownersPatience); last.Before(until) {
		return last
	}
	return until
}

// begunAt is when the node was cordoned; now, where it was not.
func (f *facts) begunAt() time.Time {
	if at := record.Begun(&f.was); !at.IsZero() {
		return at
	}
	return f.now
}

// hookGate says which hook has to be done with before the drain, if one has.
func (c *Controller) hookGate(f *facts, d policy.Decision) (drain.Gate, bool) {
	hooks := c.hooksOf(f, d)
	for i := range hooks {
		h := &hooks[i]
		if h.When != v1alpha1.HookBeforeDrain {
			continue
		}
		if gate, waits := record.HookGate(h, record.Hook(f.drain().Hooks, h.Name), record.GoAhead(f.in), f.nodeName); waits {
			return gate, true
		}
	}
	return drain.Gate{}, false
}

// hooksBefore has the hooks run that policy wants before the drain. Pods wait
// for them by a gate in the plan, which their last call opens.
func hooksBefore(ctx context.Context, p *pass) (bool, error) {
	if p.plan.Empty() {
		return true, nil // nothing to prepare for
	}
	_, err := p.hooks(ctx, v1alpha1.HookBeforeDrain)
	return err == nil, err
}

// hookAgain is when to look at a hook again that could not be looked at.
const hookAgain = 2 * time.Second

// hooksAfter waits for the hooks that policy wants after the drain; at the longest
// until the interruption is over. A node that lives then is put back, and not ended
// although they are not done with.
func hooksAfter(ctx context.Context, p *pass) (bool, error) {
	if !p.isDone() {
		return true, nil // the pods stay, and so does the node
	}
	end := p.end()
	if p.facts.now.Before(end) {
		done, err := p.hooks(ctx, v1alpha1.HookAfterDrain)
		if err == nil && !done {
			p.outcome.sooner(end)
		}
		return done, err
	}
	status, goAhead := p.report.drain().Hooks, record.GoAhead(p.facts.in)
	if hook.Awaited(p.hooksOf(p.facts, p.decision), v1alpha1.HookAfterDrain, status, p.report.subject(), goAhead) == "" {
		return true, nil
	}
	return false, p.walk(ctx, []step{nodeDeleted, unheld, freed, over, putBack, complete})
}

// hooksOf are the hooks that are run, or waited for. Once the node has gone there is
// nothing to hold for a person.
func (c *Controller) hooksOf(f *facts, d policy.Decision) []v1alpha1.Hook {
	if c.Errands == nil || d.InstanceGone || f.node == nil && record.Begun(&f.was).IsZero() {
		return nil // another instance may have a node of that name by now
	}
	if f.node != nil {
		return d.Hooks
	}
	hooks := slices.Clone(d.Hooks)
	for i := range hooks {
		hooks[i].OnFailure = v1alpha1.HookContinue
	}
	return hooks
}

// hooks takes the hooks of that time one step further and reports whether they
// are done with. That they could not be looked at is no error.
func (p *pass) hooks(ctx context.Context, when v1alpha1.HookTime) (bool, error) {
	hooks := p.hooksOf(p.facts, p.decision)
	if len(hooks) == 0 {
		return true, nil
	}
	if record.Begun(&p.facts.was).IsZero() { // what tells this drain's tries from another's is durable before there are any
		if err := p.writeDown(ctx); err != nil {
			return false, err
		}
	}
	out, err := p.Errands.Hooks(ctx, errand.HookRun{
		Hooks: hooks, When: when, Status: p.report.drain().Hooks,
		Subject: p.report.subject(), Now: p.facts.now, GoAhead: record.GoAhead(p.facts.in),
	})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err() // the process ends
	case err != nil: // no pod's last call is to be missed for it, nor what else this pass waits for
		log.FromContext(ctx).Error(err, "running hooks")
		p.outcome.until(p.facts.now.Add(hookAgain), "waits: "+out.Waits)
		return false, nil
	}
	p.outcome.hooks = out.Status
	for _, h := range out.Happened {
		p.report.happen(h.Reason, h.Message)
	}
	if !out.Done {
		p.outcome.until(out.Until, "waits: "+out.Waits)
	}
	return out.Done, nil
}

// drainOf identifies a drain by its start time; empty: it has not begun.
func drainOf(s *v1alpha1.InterruptionStatus) string {
	if begun := record.Begun(s); !begun.IsZero() {
		return fmt.Sprint(begun.UnixMicro())
	}
	return ""
}

// subject is what hooks and notifications are told.
func (r *report) subject() hook.Subject {
	s := hook.Subject{
		Interruption: r.before.Name, UID: r.before.UID, InstanceID: r.before.Spec.InstanceID, Node: r.after.Status.NodeName,
		Since: record.Since(&r.after.Status), Drain: drainOf(&r.after.Status), Kind: r.after.Status.Kind, Phase: r.after.Status.Phase, Drill: isDrill(r.after), Pods: r.drain().Pods,
	}
	if d := r.after.Status.Decision; d != nil {
		s.Policy, s.Reason, s.Message = d.Governor, string(d.Action), d.Message
	}
	if d := r.after.Status.Deadline; d != nil {
		s.Deadline = &d.Time.Time
	}
	return s
}
