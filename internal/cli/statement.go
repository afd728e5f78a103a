package cli

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// statementResult is what was recorded about one interruption.
type statementResult struct {
	Interruption string        `json:"interruption"`
	InstanceID   string        `json:"instanceID"`
	Node         string        `json:"node"`
	Said         string        `json:"said"`
	By           string        `json:"by"`
	Time         time.Time     `json:"time"`
	About        string        `json:"about,omitempty"`
	Until        *time.Time    `json:"until,omitempty"`
	Note         string        `json:"note,omitempty"`
	Phase        v1beta1.Phase `json:"phase,omitempty"`
	// Next is what happens next, a sentence.
	Next string `json:"next"`
}

// done returns what was recorded and what happens next.
func (it statement) done(w *observed, d policy.Decision) statementResult {
	in := w.record
	r := statementResult{
		Interruption: in.Name, InstanceID: in.Spec.InstanceID, Node: w.name(), By: it.by, Time: statementTime(in, w.now).UTC(),
		About: d.About, Note: it.note, Phase: in.Status.Phase,
	}
	w.policy.Approval = in.Spec.Approval
	if after, ok := policy.Decide(w.policy); ok {
		d = after
	}
	switch it.verb {
	case verbApprove:
		r.Said, r.Next = "approved", w.next(d)
	case verbHold:
		r.Said, r.Next = "held", w.heldNext(d)
		if in.Spec.Hold.Until != nil {
			r.Until = &in.Spec.Hold.Until.Time
		}
	case verbRelease:
		r.Said, r.Next = "released", w.next(d)
	}
	return r
}

// next returns what happens next to an interruption, and when.
func (w *observed) next(d policy.Decision) string {
	hold, budget, pool := w.holding(w.now), w.budget(d), w.terminations(d)
	switch begins := w.begins(d); {
	case !d.Begun.IsZero() && hold != nil:
		return hold.By + " holds the drain"
	case !d.Begun.IsZero():
		return "the drain continues at once"
	case d.AwaitsApproval:
		return "it waits for an approval"
	case begins.After(w.now):
		return fmt.Sprintf("%s %s, at %s; until then its phase is Scheduled", d.Action, terminal.Relative(begins, w.now), formatClock(begins, w.now))
	case !record.Drains(d.Action):
		return fmt.Sprintf("%s: its pods are not moved", d.Action)
	case budget.full():
		return fmt.Sprintf("its phase is Queued: policy %s allows %s", d.EffectivePolicy, budget)
	case pool.full():
		return fmt.Sprintf("its phase is Queued: its pool allows %s", pool)
	case hold != nil:
		return "its node is cordoned now; its pods wait because " + hold.By + " holds the drain"
	}
	return fmt.Sprintf("%s now: its node is cordoned and its pods leave", d.Action)
}

// heldNext returns what a hold means for the interruption.
func (w *observed) heldNext(d policy.Decision) string {
	var text string
	switch until := w.record.Spec.Hold.Until; {
	case !record.Drains(d.Action):
		return fmt.Sprintf("the action is %s, which moves no pods; the hold applies if another notice leads to a drain", d.Action)
	case until != nil:
		text = fmt.Sprintf("no more pods are evicted until %s", formatClock(until.Time, w.now))
	default:
		text = "no more pods are evicted until the hold is released"
	}
	if isHard(d.Deadline) {
		return text + fmt.Sprintf(", except each pod at its last call, because the deadline at %s is hard", formatClock(d.Deadline.Time.Time, w.now))
	}
	return text
}

// print prints the result for people.
func (r statementResult) print(s terminal.Stream) {
	s.Printf("%s by %s: %s (%s)\n", r.Said, r.By, s.Paint(terminal.Bold, r.Node), r.InstanceID)
	s.Fact(factIndent, "about", terminal.Plain, r.About)
	s.Fact(factIndent, "next", terminal.Plain, r.Next)
}
