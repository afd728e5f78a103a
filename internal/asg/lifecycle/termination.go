package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	// lookSoon is when a group is read again whose state is about to change.
	lookSoon = 10 * time.Second
	// freshFor is for how long a state counts for a result that carries no token.
	freshFor = 2 * time.Minute
	// early is how long before the hooks' final timeout they are completed.
	early = 10 * time.Second
	// confirmedFor is for how long hooks can be completed after that was confirmed.
	confirmedFor = 20 * time.Second
	// blindTries is how often a hook is completed if no state can be read.
	blindTries = 5
)

// DecideTermination decides about an instance whose node an Interruption drains.
func DecideTermination(f TerminationFacts) TerminationDecision {
	w := f.read()
	at := f.stands(w)
	if !w.any && at != Held || at == Elsewhere && f.Was == nil {
		return TerminationDecision{Status: f.Was}
	}
	s := f.status(w)
	if s.Group == "" {
		return TerminationDecision{Status: f.Was}
	}
	switch at {
	case Held:
		d := f.decideHeld(s)
		d.Look = d.Look || d.Pending && f.Seen.stand(w.returns) != Held // the event was faster than the read
		return d
	case Past, Elsewhere:
		return f.decidePast(s, at)
	case Before:
		return f.decideBefore(s)
	}
	return TerminationDecision{Status: f.Was} // it is unknown, and no event has named a hook of Lifeboat's
}

// status is the last status with the new facts. A new token is another firing, which starts from
// zero. So does a hold on the way out of the pool, after any other state.
func (f *TerminationFacts) status(w firing) *Status {
	s := &Status{}
	if f.Was != nil && (!f.leavesPool() || Read(f.Was.State).Phase == LeavingPool) {
		s = f.Was.DeepCopy()
	}
	if slices.ContainsFunc(s.Hooks, func(h v1beta1.LifecycleHookStatus) bool {
		token := w.tokens[h.Name]
		return token != "" && h.Token != "" && token != h.Token
	}) {
		s = &Status{}
	}
	s.Group = cmp.Or(f.Seen.Group, s.Group, w.group)
	if !f.Seen.Time.IsZero() {
		s.State = f.Seen.State
	}
	s.ReturnsToWarmPool = w.returns
	was := s.Hooks
	s.Hooks = nil
	for _, name := range f.own(w) {
		h := v1beta1.LifecycleHookStatus{Name: name, Token: w.tokens[name]}
		if i := slices.IndexFunc(was, func(o v1beta1.LifecycleHookStatus) bool { return o.Name == name }); i >= 0 {
			h.Token, h.Accepted = cmp.Or(h.Token, was[i].Token), was[i].Accepted
		}
		s.Hooks = append(s.Hooks, h)
	}
	return s
}

// own are the names of the hooks to complete, sorted.
func (f *TerminationFacts) own(w firing) []string {
	hooks, _ := Split(f.Seen.Hooks, true)
	names := map[string]bool{}
	for _, h := range hooks {
		names[h.Name] = true
	}
	if !f.Seen.HooksKnown {
		for name := range w.tokens {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (f *TerminationFacts) drains() bool {
	return f.Action == v1beta1.ActionDrain || f.Action == v1beta1.ActionTerminate
}

// decideBefore: the hooks will hold the instance once load balancers have deregistered it. Its
// drain is in progress meanwhile.
func (f *TerminationFacts) decideBefore(s *Status) TerminationDecision {
	if len(s.Hooks) == 0 || !f.drains() {
		return TerminationDecision{Status: f.Was}
	}
	s.Message = fmt.Sprintf("group %s has not reached its lifecycle hooks (%s): load balancers deregister the instance first", s.Group, s.State)
	return TerminationDecision{Status: s, Pending: true, Look: f.Drained, Call: Call{Wake: f.Now.Add(lookSoon)}}
}

// decidePast: the wait is over, or the instance is in another phase, in which nothing is
// completed for this one.
func (f *TerminationFacts) decidePast(s *Status, at Stand) TerminationDecision {
	if s.WaitingSince == nil || s.CompletedTime != nil {
		return TerminationDecision{Status: f.Was}
	}
	s.CompletedTime = microTime(f.Now)
	switch {
	case at == Elsewhere:
		s.Message = fmt.Sprintf("group %s has the instance in state %s by now; nothing is answered any more", s.Group, s.State)
	case s.State == "":
		s.Message = fmt.Sprintf("the instance has left group %s", s.Group)
	case Read(s.State).Phase == Retained:
		s.Message = fmt.Sprintf("its hook was abandoned, and group %s retains the instance (%s); it is terminated once it is drained", s.Group, s.State)
	case s.ReturnsToWarmPool:
		s.Message = fmt.Sprintf("the instance goes back to the warm pool of group %s (%s)", s.Group, s.State)
	case s.CompleteCallTime == nil:
		s.Message = fmt.Sprintf("the instance goes on (%s), without an answer of Lifeboat's", s.State)
	default:
		s.Message = fmt.Sprintf("the instance goes on (%s)", s.State)
	}
	return TerminationDecision{Status: s}
}

// decideHeld: hooks hold the instance.
func (f *TerminationFacts) decideHeld(s *Status) TerminationDecision {
	if f.Seen.Time.IsZero() && s.CompletedTime != nil {
		return TerminationDecision{Status: f.Was} // nothing more will ever be known
	}
	f.noteHeld(s)
	switch {
	case len(s.Hooks) == 0:
		s.Message = f.ofOthers(s)
		return TerminationDecision{Status: s}
	case !f.drains():
		s.Message = fmt.Sprintf("hook %s of group %s times out without an answer, because the policy says %s; with the action Drain, Lifeboat answers it", hookNames(s), s.Group, f.Action)
		return TerminationDecision{Status: s}
	case f.Drained, f.isOut(s) && !s.RetainOnAbandon:
		return f.complete(s)
	case f.isOut(s):
		s.Message = fmt.Sprintf("the time to drain is over; hook %s is left to its default result ABANDON, on which group %s retains the instance", hookNames(s), s.Group)
		return TerminationDecision{Status: s, Pending: true}
	}
	return f.extend(s)
}

// ofOthers says which hooks hold it.
func (f *TerminationFacts) ofOthers(s *Status) string {
	switch _, others := Split(f.Seen.Hooks, true); {
	case !f.Seen.HooksKnown:
		return fmt.Sprintf("which hooks of group %s hold the instance is not known; allow autoscaling:DescribeLifecycleHooks", s.Group)
	case len(others) == 0:
		return fmt.Sprintf("the instance waits, and group %s has no hook any more; its time-out ends that", s.Group)
	default:
		return fmt.Sprintf("hook %s of group %s is not Lifeboat's to answer; name it in a NodeGroup, or with --lifecycle-hooks, to have it extended and answered",
			Names(others), s.Group)
	}
}

// extend sends heartbeats in time.
func (f *TerminationFacts) extend(s *Status) TerminationDecision {
	d := TerminationDecision{Status: s, Pending: true}
	bound := f.bound(s)
	text := "extended while the node is drained"
	if !bound.IsZero() {
		text += ", until " + clock(bound) + " at the latest"
	}
	if s.FailedHeartbeats == 0 {
		s.Message = fmt.Sprintf("hook %s of group %s holds the instance and is %s", hookNames(s), s.Group, text)
	}
	if !bound.IsZero() && !s.ExpiryTime.Time.Before(bound.Add(early)) && !isOnlyByFailures(s, bound) {
		d.Wake = bound // nothing changes before
		return d
	}
	if d.Call = f.hold(s).Heartbeat(); d.Do == Nothing {
		d.Wake = earlier(d.Wake, bound)
	}
	return d
}

// isOnlyByFailures reports whether the drain ends only because heartbeats fail: the next one may succeed, and
// moves that end. The deadline in the record has whole seconds.
func isOnlyByFailures(s *Status, bound time.Time) bool {
	return s.FailedHeartbeats > 0 && !bound.Before(s.ExpiryTime.Add(-early).Truncate(time.Second))
}

// complete completes the hooks, again and again until the state has left :Wait.
func (f *TerminationFacts) complete(s *Status) TerminationDecision {
	if text := f.givesUp(s); text != "" {
		s.Message = text
		return TerminationDecision{Status: s}
	}
	d := TerminationDecision{Status: s, Pending: true}
	if !f.Seen.Time.IsZero() && f.Now.Sub(f.Seen.Time) > freshFor && slices.ContainsFunc(s.Hooks, func(h v1beta1.LifecycleHookStatus) bool { return h.Token == "" }) {
		s.Message = fmt.Sprintf("hook %s is answered once group %s could be looked at again, last at %s", hookNames(s), s.Group, clock(f.Seen.Time))
		d.Look, d.Wake = true, f.Now.Add(lookSoon)
		return d
	}
	switch d.Call = f.hold(s).Complete(); {
	case d.Do == Nothing:
		d.Look = !f.lookedSince(s)
	case f.isConfirmed(s):
		d.Wake = f.Due.Add(confirmedFor)
	default:
		d.Call, d.Confirm = Call{}, true
	}
	return d
}

// isConfirmed reports whether it was confirmed since the last try, and lately, that the hooks can
// be completed.
func (f *TerminationFacts) isConfirmed(s *Status) bool {
	return !f.Due.IsZero() && f.Now.Sub(f.Due) < confirmedFor && (s.CompleteCallTime == nil || f.Due.After(s.CompleteCallTime.Time))
}

// givesUp says why no result is sent any more; empty: one is.
func (f *TerminationFacts) givesUp(s *Status) string {
	accepted := !slices.ContainsFunc(s.Hooks, func(h v1beta1.LifecycleHookStatus) bool { return !h.Accepted })
	blind := f.Seen.Time.IsZero()
	_, others := Split(f.Seen.Hooks, true)
	switch {
	case accepted && len(others) > 0 && f.lookedSince(s):
		return fmt.Sprintf("hook %s is answered; hook %s of group %s still holds the instance, and is not Lifeboat's to answer", hookNames(s), Names(others), s.Group)
	case s.Tries >= blindTries && !accepted && Read(s.State).Phase == Warming:
		return fmt.Sprintf("no terminate hook of group %s is pending: it is a launch hook that holds the instance on its way into the warm pool", s.Group)
	case blind && (accepted || s.Tries >= blindTries):
		s.CompletedTime = microTime(f.Now)
		return fmt.Sprintf("hook %s was answered; whether the instance goes on is not known; allow autoscaling:DescribeAutoScalingGroups", hookNames(s))
	}
	return ""
}

// lookedSince reports whether the group was read after the last result was sent.
func (f *TerminationFacts) lookedSince(s *Status) bool {
	return s.CompleteCallTime != nil && f.Seen.Time.After(s.CompleteCallTime.Time)
}

// isOut reports whether the time to drain is over.
func (f *TerminationFacts) isOut(s *Status) bool {
	bound := f.bound(s)
	return !bound.IsZero() && !f.Now.Before(bound)
}

// bound is when the instance goes, drained or not; zero: not known. It does not go at an estimate: that is
// the time of a person's request, or a shutdown that the hooks cannot stop.
func (f *TerminationFacts) bound(s *Status) time.Time {
	var at time.Time
	if d := f.Deadline; d != nil && (d.Type == v1beta1.DeadlineHard || d.Type == v1beta1.DeadlineSoft && s.RetainOnAbandon) {
		at = d.Time.Time
	}
	if s.EndTime != nil {
		at = earlier(at, s.EndTime.Time)
	}
	return at
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func microTime(t time.Time) *metav1.MicroTime {
	at := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &at
}
