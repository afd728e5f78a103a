package interruption

import (
	"context"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=lifeboat.dev,resources=pauses,verbs=list;watch

func (f *facts) forPolicy() policy.Facts {
	facts := record.Facts(f.in, f.node, f.policies, f.now)
	facts.Unconfirmed = f.gone != nil
	return facts
}

// decide makes the decision, and notes the pause that stops the action, if any.
func (f *facts) decide(observe bool) (policy.Decision, bool) {
	d, pause, ok := record.Decide(f.forPolicy(), record.PauseOf(f.pauses, f.node, f.now), func(d policy.Decision) policy.Decision {
		return forceDrainDetached(f, d)
	})
	f.pause = pause
	if observe {
		d.Mode, d.Message = v1beta1.ModeObserve, record.ObserveMessage+d.Message
	}
	return d, ok
}

// stepsPaused are the steps of an Interruption that a pause stops: what was done stays as it is.
func stepsPaused() []step { return []step{awaitResume, awaitInstanceGone, complete} }

// awaitResume waits for the end of the pause, or until the instance is gone.
func awaitResume(_ context.Context, p *pass) (bool, error) {
	detached := replacement.IsDetached(p.facts.drain().Replacement) // only Lifeboat terminates it
	if p.facts.node == nil && p.plan.Empty() && !p.facts.awaitsNode(p.decision) && (!detached || p.decision.InstanceGone) {
		return true, nil
	}
	gate := record.PauseGate(p.facts.pause)
	p.outcome.Paused = "waits: " + gate.Why
	p.outcome.wait(gate.Until, p.outcome.Paused)
	if d := p.decision.Deadline; d != nil {
		p.outcome.requeueAt(futureOnly(d.Time.Add(-policy.Lead), p.facts.now)) // the deadline is hard from then on
	}
	return false, nil
}

// pausedUntil is when the pause ends or has ended; zero: there was none.
func (f *facts) pausedUntil() time.Time {
	if f.pause != nil {
		return record.PauseEnd(f.pause)
	}
	return record.Resumed(&f.was, f.now)
}
