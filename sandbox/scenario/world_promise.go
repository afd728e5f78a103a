package scenario

import (
	"fmt"
	"time"
)

// promise is a condition that has to hold from when it was made to the end.
type promise struct {
	step   Step
	cond   Condition
	broken string // how it was, first; "": not so far
}

// Promise demands a condition from now on.
func (w *World) Promise(s Step, c Condition) {
	w.promises = append(w.promises, &promise{step: s, cond: c})
}

// Keep looks at all promises, and tells of each that is broken, once.
func (w *World) Keep(t time.Time) []Moment {
	var out []Moment
	for _, p := range w.promises {
		if p.broken != "" {
			continue
		}
		if ok, why := p.cond.Holds(w); !ok {
			p.broken = fmt.Sprintf("line %d, %q does not hold", p.step.Line, p.step.Text)
			if w.Started() {
				p.broken += fmt.Sprintf(" %s after the notice", seconds(t.Sub(w.notice)))
			}
			p.broken += ": " + why
			out = append(out, w.moment(t, MomentFailed, "", "", p.broken))
		}
	}
	return out
}

// Broken lists what became of the promises that were not kept.
func (w *World) Broken() []string {
	var out []string
	for _, p := range w.promises {
		if p.broken != "" {
			out = append(out, p.broken)
		}
	}
	return out
}

// kept lists the promises that held to the end.
func (w *World) kept() []*promise {
	var out []*promise
	for _, p := range w.promises {
		if p.broken == "" {
			out = append(out, p)
		}
	}
	return out
}
