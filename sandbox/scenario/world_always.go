package scenario

import (
	"fmt"
	"time"
)

// requirement is a condition that must hold from its line to the end.
type requirement struct {
	step   Step
	cond   Condition
	broken string // its first failure, or ""
}

// Require adds a condition that must hold from now on.
func (w *World) Require(s Step, c Condition) {
	w.requirements = append(w.requirements, &requirement{step: s, cond: c})
}

// CheckRequirements checks all requirements, and reports each failure once.
func (w *World) CheckRequirements(t time.Time) []Moment {
	var out []Moment
	for _, p := range w.requirements {
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

// BrokenRequirements lists the failures.
func (w *World) BrokenRequirements() []string {
	var out []string
	for _, p := range w.requirements {
		if p.broken != "" {
			out = append(out, p.broken)
		}
	}
	return out
}

// metRequirements lists the requirements that held to the end.
func (w *World) metRequirements() []*requirement {
	var out []*requirement
	for _, p := range w.requirements {
		if p.broken == "" {
			out = append(out, p)
		}
	}
	return out
}
