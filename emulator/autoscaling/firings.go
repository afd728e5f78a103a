package autoscaling

import "time"

// Firing is one time that a hook holds an instance.
type Firing struct {
	InstanceID, Group, Hook string
	Transition              Transition
	Held, Ended             time.Time // Ended is zero while it holds it
	Result                  Result    // empty while it holds it, and where the instance was gone
	By                      FiringEnd
}

// FiringEnd is what ended a firing.
type FiringEnd string

// The ends.
const (
	ByAnswer  FiringEnd = "answer"
	ByTimeout FiringEnd = "timeout"
	// ByDeletion is that of the hook.
	ByDeletion FiringEnd = "deletion"
	// ByLoss: the instance was gone, another hook abandoned it, or it went another way.
	ByLoss FiringEnd = "gone"
)

// Firings lists the firings of hooks so far, oldest first. On AWS no call does.
func (s *State) Firings() []Firing {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Firing, len(s.firings))
	for i, f := range s.firings {
		out[i] = *f
	}
	return out
}

// fire notes that a hook holds an instance now. It needs the lock.
func (s *State) fire(m *member, h Hook) *Firing {
	f := &Firing{InstanceID: m.InstanceID, Group: m.Group, Hook: h.Name, Transition: h.Transition, Held: time.Now()}
	s.firings = append(s.firings, f)
	if len(s.firings) > maxTrace {
		s.firings = s.firings[maxTrace/10:]
	}
	return f
}

// end notes how a firing ended, first.
func (f *Firing) end(r Result, by FiringEnd) {
	if f.Ended.IsZero() {
		f.Ended, f.Result, f.By = time.Now(), r, by
	}
}

// lapse ends the firings of a trip's actions that nobody will answer.
func (t *trip) lapse() {
	for _, a := range t.actions {
		a.firing.end("", ByLoss)
	}
}
