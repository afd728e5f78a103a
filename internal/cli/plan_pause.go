package cli

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// decide decides under the pause that is in force for the node.
func (w *observed) decide() (d policy.Decision, ok bool) {
	d, w.pause, ok = record.Decide(w.policy, record.PauseOf(w.pauses, w.node, w.now), func(d policy.Decision) policy.Decision { return d })
	return d, ok
}

// afterPause returns when the pause lets the action begin or go on: begins, or later.
func (w *observed) afterPause(d policy.Decision, begins time.Time) time.Time {
	if w.pause == nil {
		return begins
	}
	end := record.PauseEnd(w.pause)
	if d.Deadline != nil && d.Deadline.Type == v1beta1.DeadlineSoft && !record.StopsEverything(w.pause) {
		if near := d.Deadline.Time.Add(-policy.Lead); near.Before(end) {
			end = near // the deadline is hard from then on
		}
	}
	if end.After(begins) {
		return end
	}
	return begins
}

// addPause adds the wait for the end of a pause. If the pause lasts until after a deadline that
// people cannot move, it lists the pods as lost, and reports true.
func (p *planned) addPause(s *session, facts drain.Facts, pause *v1beta1.Pause) (lost bool) {
	if pause == nil {
		return false
	}
	p.Waits = append(p.Waits, "the end of the pause: "+record.PauseGate(pause).Why)
	if !isHard(facts.Deadline) || facts.Deadline.Time.After(record.PauseEnd(pause)) {
		return false
	}
	p.leaveAlone(facts, "the pause stops everything, so the pod is not moved")
	p.Fix = []string{"to move the pods, end the pause: run `" + record.ResumeCommand(pause, s.name) + "`"}
	return true
}
