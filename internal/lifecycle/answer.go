package lifecycle

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"
)

// answer has those of the hooks answered whose turn it is. That one took the answer
// is not the end: only that the state has left :Wait is.
func answer(f Facts, m Memory, own []Hook, because string) Decision {
	if f.Stale {
		return extend(f, m, own, because+"; it is answered once Auto Scaling can be asked whether it still waits")
	}
	d := Decision{Hook: own[0].Name, Expires: expires(m, own)}
	others := othersOf(f, own[0].Terminating)
	for _, h := range own {
		s := m.Said[h.Name]
		if len(others) > 0 && !s.Taken.IsZero() && s.Refused {
			continue // it has let go; the rest is for others
		}
		due := again(f, h, s, len(others) > 0)
		if !f.Now.Before(due) {
			d.Hooks = append(d.Hooks, h.Name)
			continue
		}
		d.Wake = earlier(d.Wake, due)
	}
	if len(d.Hooks) > 0 {
		d.Do, d.Reason = Complete, because
		return d
	}
	d.Reason = because + "; " + outcome(f, m, own, others)
	return d
}

// outcome says what came of answering.
func outcome(f Facts, m Memory, own []Hook, others []string) string {
	heard := true
	for _, h := range own {
		s := m.Said[h.Name]
		if s.Denied != "" {
			return "hook " + h.Name + " cannot be answered: " + s.Denied
		}
		heard = heard && !s.Taken.IsZero()
	}
	switch {
	case heard && len(others) > 0:
		return fmt.Sprintf("it was answered, and %s still %s it", plural(others, "the hook", "the hooks"), verb(others))
	case heard:
		return "it was answered, and its state is to follow"
	}
	return fmt.Sprintf("Auto Scaling took no answer although its state is %s: it is answered again", f.State)
}

// again is when a hook may be answered again.
func again(f Facts, h Hook, s Said, others bool) time.Time {
	switch {
	case !s.Answered:
		return time.Time{} // it was only extended, or nothing was said
	case s.Denied != "":
		return s.Tried.Add(deniedRetry)
	case !s.Taken.IsZero() && others:
		return s.Tried.Add(othersRetry)
	case s.Heard:
		return s.Tried.Add(heardRetry)
	}
	return s.Tried.Add(backoff(f.InstanceID, h.Name, s.Tries))
}

// backoff grows from firstRetry to lastRetry, and varies by a fifth, so that many
// instances are not answered at one moment again.
func backoff(instanceID, hook string, tries int) time.Duration {
	d := min(lastRetry, firstRetry<<min(max(tries-1, 0), 8))
	h := fnv.New32a()
	_, _ = h.Write([]byte(instanceID + hook + strconv.Itoa(tries))) // it never fails
	return d - d/10 + d/5*time.Duration(h.Sum32()%100)/100
}

// extend sends heartbeats while there is patience: at a third of the hook's
// timeout, so that two may be lost.
func extend(f Facts, m Memory, own []Hook, why string) Decision {
	d := Decision{Hook: own[0].Name, Expires: expires(m, own), Reason: why}
	over := m.Held.Add(budget(f.Patience, own))
	if !f.Now.Before(over) {
		d.Reason = fmt.Sprintf("%s, and its patience of %s is over: it is left to the hook's own result", why, budget(f.Patience, own))
		if !m.GaveUp {
			d.Do = GiveUp
		}
		return d
	}
	d.Wake = over
	for _, h := range own {
		due := beat(f, m, h)
		if !f.Now.Before(due) {
			d.Hooks = append(d.Hooks, h.Name)
			continue
		}
		d.Wake = earlier(d.Wake, due)
	}
	if len(d.Hooks) > 0 {
		d.Do = Extend
	}
	for _, h := range own {
		if s := m.Said[h.Name]; s.Denied != "" {
			d.Reason = why + "; hook " + h.Name + " cannot be extended: " + s.Denied
		}
	}
	return d
}

// beat is when a hook is to be extended next.
func beat(f Facts, m Memory, h Hook) time.Time {
	s := m.Said[h.Name]
	switch {
	case s.Denied != "":
		return s.Tried.Add(deniedRetry)
	case s.Tries > 0:
		return s.Tried.Add(backoff(f.InstanceID, h.Name, s.Tries))
	case s.Extended.IsZero() && !m.Sure:
		return m.Held // nobody knows for how long it was held before
	}
	last := m.Held
	if s.Extended.After(last) {
		last = s.Extended
	}
	return last.Add(timeout(h) / beats)
}

// budget is for how long a launch is extended in all.
func budget(patience time.Duration, own []Hook) time.Duration {
	for _, h := range own {
		if h.Global > 0 {
			patience = min(patience, h.Global)
		}
	}
	return patience
}

// expires is when the first of the hooks is out of time, as far as is known.
func expires(m Memory, own []Hook) time.Time {
	var first time.Time
	for _, h := range own {
		last := m.Held
		if e := m.Said[h.Name].Extended; e.After(last) {
			last = e
		}
		first = earlier(first, last.Add(timeout(h)))
	}
	return first
}

// timeout is a hook's; Auto Scaling's own default where it is not known (Amazon
// EC2 Auto Scaling API Reference, PutLifecycleHook).
func timeout(h Hook) time.Duration { return cmp.Or(h.Timeout, time.Hour) }

func shortest(own []Hook) time.Duration {
	least := timeout(own[0])
	for _, h := range own[1:] {
		least = min(least, timeout(h))
	}
	return least
}

// othersOf returns the hooks of a transition that are not one's own.
func othersOf(f Facts, terminating bool) []string {
	var others []string
	for _, h := range f.Hooks {
		if h.Terminating == terminating && !h.Own {
			others = append(others, h.Name)
		}
	}
	return others
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
