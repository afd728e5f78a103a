package termination

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/lifecycle"
)

const (
	// lookEvery is how far apart groups are looked at: a hook may have begun to hold
	// the instance that long before it was seen.
	lookEvery = 30 * time.Second
	// lookSoon is when a group is looked at again whose state is about to change.
	lookSoon = 10 * time.Second
	// freshFor is for how long a state counts for an answer that carries no token.
	freshFor = 2 * time.Minute
	// guessTimeout is what a hook is taken to wait of which nothing can be read; the
	// shortest that there is takes 30 s.
	guessTimeout = time.Minute
	// early is how long before the hooks' time is out for good they are answered.
	early = 10 * time.Second
	// blindTries is how often a hook is answered where no state can be read.
	blindTries = 5
	// firstRetry, lastRetry and slowRetry are when an answer is given again that was
	// not taken.
	firstRetry = 2 * time.Second
	lastRetry  = 30 * time.Second
	slowRetry  = time.Minute
)

// Decide says what the hooks are told now.
func Decide(f Facts) Decision {
	w := f.read()
	at := f.stands(w)
	if !w.any && at != held || at == elsewhere && f.Was == nil {
		return Decision{Status: f.Was}
	}
	s := f.status(w)
	if s.Group == "" {
		return Decision{Status: f.Was}
	}
	switch at {
	case held:
		d := f.decideHeld(s)
		d.Look = d.Look || d.Pending && position(f.Seen, w) != held // an event was faster
		return d
	case past, elsewhere:
		return f.decidePast(s, at)
	case before:
		return f.decideBefore(s)
	}
	return Decision{Status: f.Was} // it is not known, and no event has named a hook of ours
}

// status is how it stood, with what is new. A token that was not there before is
// another firing, which begins anew; so is being held on the way out of the pool,
// after any other state.
func (f *Facts) status(w firing) *Status {
	s := &Status{}
	if f.Was != nil && (!f.leavesPool() || lifecycle.Read(f.Was.State).Phase == lifecycle.LeavingPool) {
		s = f.Was.DeepCopy()
	}
	for _, h := range s.Hooks {
		if token := w.tokens[h.Name]; token != "" && h.Token != "" && token != h.Token {
			s = &Status{}
			break
		}
	}
	s.Group = cmp.Or(f.Seen.Group, s.Group, w.group)
	if !f.Seen.Time.IsZero() {
		s.State = f.Seen.State
	}
	s.Returns = w.returns
	was := s.Hooks
	s.Hooks = nil
	for _, name := range f.own(w) {
		h := v1alpha1.HookAnswer{Name: name, Token: w.tokens[name]}
		if i := slices.IndexFunc(was, func(o v1alpha1.HookAnswer) bool { return o.Name == name }); i >= 0 {
			h.Token, h.Accepted = cmp.Or(h.Token, was[i].Token), was[i].Accepted
		}
		s.Hooks = append(s.Hooks, h)
	}
	return s
}

// own are the names of the hooks to answer, sorted.
func (f *Facts) own(w firing) []string {
	var names []string
	for _, h := range f.Seen.Hooks {
		if h.Own {
			names = append(names, h.Name)
		}
	}
	if !f.Seen.HooksKnown {
		for name := range w.tokens {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// others are the names of the hooks that somebody else answers.
func (f *Facts) others() []string {
	var names []string
	for _, h := range f.Seen.Hooks {
		if !h.Own {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (f *Facts) drains() bool {
	return f.Action == v1alpha1.ActionDrain || f.Action == v1alpha1.ActionTerminate
}

// decideBefore: the group is about to ask its hooks, once load balancers have let
// the instance go. Its drain is under way meanwhile.
func (f *Facts) decideBefore(s *Status) Decision {
	if len(s.Hooks) == 0 || !f.drains() {
		return Decision{Status: f.Was}
	}
	s.Message = fmt.Sprintf("group %s has yet to ask its hooks (%s); load balancers let the instance go first", s.Group, s.State)
	return Decision{Status: s, Pending: true, Look: f.Drained, Wake: f.Now.Add(lookSoon)}
}

// decidePast: the wait is over, whoever ended it; or it is another phase by now,
// in which nothing is answered for this one.
func (f *Facts) decidePast(s *Status, at where) Decision {
	if s.HeldTime == nil || s.CompletedTime != nil {
		return Decision{Status: f.Was}
	}
	s.CompletedTime = microTime(f.Now)
	switch {
	case at == elsewhere:
		s.Message = fmt.Sprintf("group %s has the instance in state %s by now; nothing is answered any more", s.Group, s.State)
	case s.State == "":
		s.Message = fmt.Sprintf("the instance has left group %s", s.Group)
	case lifecycle.Read(s.State).Phase == lifecycle.Retained:
		s.Message = fmt.Sprintf("its hook was abandoned, and group %s retains the instance (%s); it is terminated once it is drained", s.Group, s.State)
	case s.Returns:
		s.Message = fmt.Sprintf("the instance goes back to the warm pool of group %s (%s)", s.Group, s.State)
	case s.AnswerTime == nil:
		s.Message = fmt.Sprintf("the instance goes on (%s), without an answer of Lifeboat's", s.State)
	default:
		s.Message = fmt.Sprintf("the instance goes on (%s)", s.State)
	}
	return Decision{Status: s}
}

// decideHeld: hooks hold the instance.
func (f *Facts) decideHeld(s *Status) Decision {
	if f.Seen.Time.IsZero() && s.CompletedTime != nil {
		return Decision{Status: f.Was} // nothing more will ever be known
	}
	f.hold(s)
	switch {
	case len(s.Hooks) == 0:
		s.Message = f.ofOthers(s)
		return Decision{Status: s}
	case !f.drains():
		s.Message = fmt.Sprintf("hook %s of group %s is left to its time-out, since policy says %s; with action Drain it is answered", names(s), s.Group, f.Action)
		return Decision{Status: s}
	case f.Drained, f.isOut(s) && !s.Retains:
		return f.answer(s)
	case f.isOut(s):
		s.Message = fmt.Sprintf("the time to drain is over; hook %s is left to its default result ABANDON, on which group %s retains the instance", names(s), s.Group)
		return Decision{Status: s, Pending: true}
	}
	return f.extend(s)
}

// ofOthers says who holds it.
func (f *Facts) ofOthers(s *Status) string {
	switch others := f.others(); {
	case !f.Seen.HooksKnown:
		return fmt.Sprintf("which hooks of group %s hold the instance is not known; allow autoscaling:DescribeLifecycleHooks", s.Group)
	case len(others) == 0:
		return fmt.Sprintf("the instance waits, and group %s has no hook any more; its time-out ends that", s.Group)
	default:
		return fmt.Sprintf("hook %s of group %s is not Lifeboat's to answer; name it in a NodeGroup, or with --lifecycle-hooks, to have it extended and answered",
			strings.Join(others, ", "), s.Group)
	}
}

// hold notes since when the hooks hold it, and for how long they do.
func (f *Facts) hold(s *Status) {
	timeout, global, abandons := f.patience(s)
	s.TimeoutSeconds, s.Retains = int64(timeout/time.Second), f.Retain && abandons
	if s.HeldTime == nil {
		s.HeldTime = microTime(f.heldSince())
	}
	s.CompletedTime = nil // where it was thought to be: the state is the truth
	if s.ExpiryTime == nil {
		s.ExpiryTime = microTime(s.HeldTime.Add(timeout))
	}
	if s.EndTime == nil && global > 0 {
		s.EndTime = microTime(s.HeldTime.Add(global - early))
	}
}

// patience is how long the most impatient of the hooks waits, how long they can be
// extended in all (zero: not known), and whether all of them abandon then.
func (f *Facts) patience(s *Status) (timeout, global time.Duration, abandons bool) {
	abandons = f.Seen.HooksKnown && len(s.Hooks) > 0
	for _, h := range f.Seen.Hooks {
		if h.Own {
			timeout, global = least(timeout, h.Timeout), least(global, h.Global)
			abandons = abandons && h.Abandons
		}
	}
	if timeout <= 0 && !f.Seen.HooksKnown {
		timeout = time.Duration(s.TimeoutSeconds) * time.Second // as it was when they were
	}
	if timeout <= 0 {
		timeout = guessTimeout
	}
	return timeout, global, abandons
}

// heldSince is when the hooks have begun to hold it, at the latest: as the event
// says, or else just after the group was looked at before.
func (f *Facts) heldSince() time.Time {
	w := f.read()
	if !w.at.IsZero() && !w.at.After(f.Now) && f.Now.Sub(w.at) < 2*time.Hour {
		return w.at
	}
	return f.Now.Add(-lookEvery)
}

func least(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// isOut reports whether the time to drain is over.
func (f *Facts) isOut(s *Status) bool {
	if s.EndTime != nil && !f.Now.Before(s.EndTime.Time) {
		return true
	}
	return f.Deadline != nil && (f.Deadline.Type == v1alpha1.DeadlineHard || s.Retains) && !f.Now.Before(f.Deadline.Time.Time)
}
