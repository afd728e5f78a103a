package drain

import (
	"strings"
	"time"
)

// inForce returns the gates that have not expired.
func inForce(gates []Gate, now time.Time) []Gate {
	var closed []Gate
	for _, g := range gates {
		if g.Until.IsZero() || g.Until.After(now) {
			closed = append(closed, g)
		}
	}
	return closed
}

// gated makes every pod wait for all gates, whether it is evicted or surged, but not past its
// turn. Without a hard deadline there is no turn, and a gate holds as long as it exists.
func gated(s *planContext, c *podState) (Verdict, bool) {
	if len(s.gates) == 0 || !s.awaitsTurn(c) {
		return Verdict{}, false
	}
	var until time.Time // when the last gate expires, if all do
	open := true
	whys := make([]string, 0, len(s.gates))
	for _, g := range s.gates {
		whys = append(whys, brief(g.Why))
		open = open && !g.Until.IsZero()
		if g.Until.After(until) {
			until = g.Until
		}
	}
	if !open {
		until = time.Time{}
	}
	return say(StepWaits, "waits: "+strings.Join(whys, ", and ")+"; "+s.untilWhen(c, until))
}
