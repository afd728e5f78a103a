package scenario

import (
	"fmt"
	"time"
)

// promise is a condition that must hold from its line to the end.
type promise struct {
	step   Step
	cond   Condition
	broken string // how it was, first; "": not so far
}

// Promise adds a condition that must hold from now on.
func (w *World) Promise(s Step, c Condition) {
	w.promises = append(w.promises, &promise{step: s, cond: c})
}

// Keep checks all promises, and reports each broken one once.
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

// Broken lists the failures of promises.
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
