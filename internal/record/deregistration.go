package record

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// DeregistrationGate is the gate of a policy's waitForDeregistration, and whether it is closed: from
// the cordon, which has load balancers deregister the node, until the status says how the wait ended,
// or its time is over. The gate has no end where nothing is waited for any more.
func DeregistrationGate(d policy.Decision, s *v1beta1.InterruptionStatus, now time.Time) (drain.Gate, bool) {
	if d.Deregistering == 0 || d.InstanceGone || Drain(s).Deregistration != "" {
		return drain.Gate{}, false
	}
	begun := Begun(s)
	if begun.IsZero() {
		begun = now
	}
	gate := drain.Gate{Why: "load balancers may still send new connections to its instance", Until: begun.Add(d.Deregistering)}
	return gate, now.Before(gate.Until)
}
