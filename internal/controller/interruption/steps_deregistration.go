package interruption

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// deregistrationGate is the gate of a policy that waits for load balancers. What AWS said before the
// node was cordoned does not count.
func (c *Controller) deregistrationGate(f *facts, d policy.Decision) (drain.Gate, bool) {
	gate, waits := record.DeregistrationGate(d, &f.was, f.now)
	if !waits || c.Targets == nil || f.node == nil || record.Begun(&f.was).IsZero() {
		return gate, waits && c.Targets != nil && f.node != nil
	}
	seen := c.Targets.State(f.in.Spec.InstanceID, gate.Until)
	if len(seen.Groups) > 0 {
		gate.Why = "load balancers still send new connections to its instance (target group " + seen.Names() + ")"
	}
	return gate, !seen.Settled()
}

// endDeregistration writes into the status, once, why pods do not wait for load balancers any more.
func (p *pass) endDeregistration() {
	gate, waits := record.DeregistrationGate(p.decision, &p.facts.was, p.facts.now)
	if gate.Until.IsZero() || p.Targets == nil || p.facts.node == nil {
		return
	}
	if record.Begun(&p.facts.was).IsZero() { // the next pass asks, once the cordon is in the status
		p.outcome.requeueAt(p.facts.now.Add(requeueCache))
		return
	}
	var reason, message string
	switch seen := p.Targets.State(p.facts.in.Spec.InstanceID, gate.Until); {
	case seen.Err != nil && (seen.Settled() || !waits):
		reason, message = v1beta1.ReasonDeregistrationUnknown, fmt.Sprintf("cannot read whether load balancers have deregistered the instance, so pods do not wait: %v", seen.Err)
	case seen.Settled():
		reason, message = v1beta1.ReasonDeregistered, "load balancers send no new connections to the instance"
	case !waits:
		reason, message = v1beta1.ReasonDeregistrationTimedOut, fmt.Sprintf("load balancers may still send new connections to the instance after %s (waitForDeregistration); pods do not wait longer", p.decision.Deregistering)
	default:
		return
	}
	p.Drain().Deregistration = reason
	p.Record(reason, message)
}
