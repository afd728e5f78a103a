package interruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/errand"
	"github.com/lifeboat-dev/lifeboat/internal/hook"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// ownersPatience is for how long pods wait for what controls them to be read.
// Without it they are evicted rather than surged.
const ownersPatience = 10 * time.Second

// gates are what all pods wait for.
func (c *Controller) gates(f *facts, d policy.Decision) []drain.Gate {
	var gates []drain.Gate
	if hold := f.holds(); hold != nil {
		gates = append(gates, holdGate(hold))
	}
	if f.ownersAwaited() {
		gates = append(gates, drain.Gate{Why: "what controls the pods is being read", Until: f.begunAt().Add(ownersPatience)})
	}
	if why := c.hookAwaited(f, d); why != "" {
		gates = append(gates, drain.Gate{Why: why})
	}
	return gates
}

// holds returns the person's word that holds the drain now, or nil.
func (f *facts) holds() *v1alpha1.Say {
	hold := f.in.Spec.Hold
	if hold == nil || (hold.Until != nil && !f.now.Before(hold.Until.Time)) || !hold.Time.After(sinceOf(&f.was)) {
		return nil
	}
	return hold
}

func holdGate(hold *v1alpha1.Say) drain.Gate {
	g := drain.Gate{Why: hold.By + " holds it"}
	if hold.Note != "" {
		g.Why += fmt.Sprintf(" (%s)", hold.Note)
	}
	if hold.Until != nil {
		g.Until = hold.Until.Time
		g.Why += " until " + g.Until.UTC().Format(time.RFC3339)
	}
	return g
}

func (f *facts) ownersAwaited() bool {
	return f.surges && !f.ownersKnown && f.now.Before(f.begunAt().Add(ownersPatience))
}

// begunAt is when the node was cordoned; now, where it was not.
func (f *facts) begunAt() time.Time {
	if c := meta.FindStatusCondition(f.was.Conditions, v1alpha1.ConditionCordoned); f.begun() && c != nil {
		return c.LastTransitionTime.Time
	}
	return f.now
}

// hookAwaited says which hook has to be done with before the drain.
func (c *Controller) hookAwaited(f *facts, d policy.Decision) string {
	if c.Errands == nil || d.InstanceGone {
		return ""
	}
	for i := range d.Hooks {
		if h := &d.Hooks[i]; h.When == v1alpha1.HookBeforeDrain {
			if why := f.awaits(h); why != "" {
				return why
			}
		}
	}
	return ""
}

// awaits says what a hook that runs before the drain is waited for; empty where
// it is done with.
func (f *facts) awaits(h *v1alpha1.Hook) string {
	i := slices.IndexFunc(f.was.Hooks, func(s v1alpha1.HookStatus) bool { return s.Name == h.Name })
	if i < 0 {
		return "hook " + h.Name + " runs first"
	}
	switch s := &f.was.Hooks[i]; {
	case s.State == v1alpha1.HookRunning:
		return fmt.Sprintf("hook %s runs (try %d of %d)", h.Name, s.Try, h.Retries+1)
	case s.State == v1alpha1.HookFailed && h.OnFailure == v1alpha1.HookHold && (s.CompletionTime == nil || !f.goAhead().After(s.CompletionTime.Time)):
		return fmt.Sprintf("hook %s has failed, and the policy holds the drain for that; `lifeboat approve %s` goes on", h.Name, f.nodeName)
	}
	return ""
}

// goAhead is when a person approved last.
func (f *facts) goAhead() time.Time {
	if say := f.in.Spec.Approval; say != nil {
		return say.Time.Time
	}
	return time.Time{}
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

// hooksAfter waits for the hooks that policy wants after the drain.
func hooksAfter(ctx context.Context, p *pass) (bool, error) {
	return p.hooks(ctx, v1alpha1.HookAfterDrain)
}

// hooks takes the hooks of that time one step further and reports whether they
// are done with.
func (p *pass) hooks(ctx context.Context, when v1alpha1.HookTime) (bool, error) {
	if p.Errands == nil || p.decision.InstanceGone || len(p.decision.Hooks) == 0 {
		return true, nil
	}
	out, err := p.Errands.Hooks(ctx, errand.HookRun{
		Hooks: p.decision.Hooks, When: when, Status: p.report.after.Status.Hooks,
		Subject: p.report.subject(), Now: p.facts.now, GoAhead: p.facts.goAhead(),
	})
	if err != nil {
		return false, fmt.Errorf("running hooks: %w", err)
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

// subject is what hooks and notifications are told.
func (r *report) subject() hook.Subject {
	s := hook.Subject{
		Interruption: r.before.Name, UID: r.before.UID, InstanceID: r.before.Spec.InstanceID, Node: r.after.Status.NodeName,
		Kind: r.after.Status.Kind, Phase: r.after.Status.Phase, Drill: isDrill(r.after), Pods: r.after.Status.Pods,
	}
	if d := r.after.Status.Decision; d != nil {
		s.Policy, s.Reason, s.Message = d.Governor, string(d.Action), d.Message
	}
	if d := r.after.Status.Deadline; d != nil {
		s.Deadline = &d.Time.Time
	}
	return s
}
