package lifecycle

import (
	"hash/fnv"
	"strconv"
	"time"
)

const (
	// firstRetry and lastRetry bound the time until a call is retried.
	firstRetry, lastRetry = 2 * time.Second, 30 * time.Second
	// acceptedRetry is the minimum time until an accepted result is sent again: the state
	// changes within seconds.
	acceptedRetry = 5 * time.Second
	// OthersRetry is the time until a result is sent again if another hook may hold the
	// instance. That is assumed after othersTries tries.
	OthersRetry = time.Minute
	othersTries = 5
	// DeniedRetry is when a call is retried that was not permitted.
	DeniedRetry = 5 * time.Minute
	// deniedLast is the minimum time until a denied heartbeat is retried, shortly before its hook times out.
	deniedLast = 10 * time.Second
	// heartbeats is their number in a hook's timeout, so that two may be lost.
	heartbeats = 3
	// lookEvery is the polling interval of groups: a hook may hold an instance for that long
	// before it is seen.
	lookEvery = 30 * time.Second
)

// Hold is an instance that lifecycle hooks hold.
type Hold struct {
	Now        time.Time
	InstanceID string
	// Own are the hooks to complete, and Others those that may hold it as well.
	Own, Others []Hook
	// Since is when hooks began to hold it. Uncertain is set if it may be earlier.
	Since     time.Time
	Uncertain bool
	// Calls has the last call for each hook in this phase.
	Calls map[string]CallRecord
}

// Call is what to send to the hooks with these names now, and when to decide again if nothing
// changes; a zero Wake is never.
type Call struct {
	Do    Verb
	Hooks []string
	Wake  time.Time
}

// Complete sends a result to each hook that is due.
func (h Hold) Complete() Call {
	var c Call
	for _, hook := range h.Own {
		t := h.Calls[hook.Name]
		if len(h.Others) > 0 && !t.Completed.IsZero() && t.Outcome == NoAction {
			continue // it is completed, and another hook holds the instance
		}
		c.add(hook, Complete, h.Now, h.nextResult(t))
	}
	return c
}

// Heartbeat extends each hook that is due.
func (h Hold) Heartbeat() Call {
	var c Call
	for _, hook := range h.Own {
		c.add(hook, Heartbeat, h.Now, h.nextHeartbeat(hook))
	}
	return c
}

func (c *Call) add(hook Hook, do Verb, now, due time.Time) {
	if now.Before(due) {
		c.Wake = earlier(c.Wake, due)
		return
	}
	c.Do, c.Hooks = do, append(c.Hooks, hook.Name)
}

// nextResult is when a hook gets a result again; zero: it got none.
func (h Hold) nextResult(t CallRecord) time.Time {
	wait := h.backoff(t.Tries)
	switch {
	case t.Do != Complete:
		return time.Time{}
	case t.Outcome == Denied:
		wait = DeniedRetry
	case len(h.Others) > 0 && (!t.Completed.IsZero() || t.Tries >= othersTries):
		wait = OthersRetry
	case t.Outcome == Accepted:
		wait = max(wait, acceptedRetry)
	}
	return t.At.Add(wait)
}

// nextHeartbeat is when a hook gets a heartbeat again: a third of its timeout after the last
// one. The first heartbeat is earlier, and spread over the instances.
func (h Hold) nextHeartbeat(hook Hook) time.Time {
	t, timeout := h.Calls[hook.Name], hook.timeout()
	failed := t.Do == Heartbeat && t.Outcome != Accepted
	switch {
	case failed && t.Outcome == Denied:
		return t.At.Add(afterDenial(h.expiry(hook).Sub(t.At)))
	case failed:
		return t.At.Add(afterMiss(timeout, h.expiry(hook).Sub(t.At), t.Tries))
	case t.Extended.IsZero() && h.Uncertain:
		return h.Since
	case t.Extended.IsZero():
		return h.Since.Add(timeout/6 + time.Duration(share(h.InstanceID)*float64(timeout/6)))
	}
	return t.Extended.Add(timeout / heartbeats)
}

// afterDenial is when a denied heartbeat is retried. Only a person can grant the permission, and may do so before
// a hook times out that has less time than DeniedRetry.
func afterDenial(left time.Duration) time.Duration {
	if left <= 0 {
		return DeniedRetry
	}
	return max(min(DeniedRetry, left/2), deniedLast)
}

// afterMiss is when a failed heartbeat is retried: the less time is left, the sooner. Once the
// hook has certainly timed out, another hook holds the instance, and there is no hurry.
func afterMiss(timeout, left time.Duration, misses int) time.Duration {
	pace := min(timeout/24<<min(max(misses-1, 0), 8), timeout/heartbeats)
	switch {
	case left > 0:
		return max(min(pace, left/2), firstRetry)
	case left > -lookEvery: // the start of the hook's timeout is only known to this precision
		return max(pace, firstRetry)
	}
	return max(pace, lastRetry)
}

// expiry is when a hook times out.
func (h Hold) expiry(hook Hook) time.Time {
	last := h.Since
	if e := h.Calls[hook.Name].Extended; e.After(last) {
		last = e
	}
	return last.Add(hook.timeout())
}

// Expires is when the first of the hooks times out; zero: there is none.
func (h Hold) Expires() time.Time {
	var first time.Time
	for _, hook := range h.Own {
		first = earlier(first, h.expiry(hook))
	}
	return first
}

// Patience bounds a patience by the hooks' global timeout.
func (h Hold) Patience(patience time.Duration) time.Duration {
	_, global := Limits(h.Own)
	return shorter(patience, global)
}

// Last returns the last call for the hooks, and whether any has accepted a result.
func (h Hold) Last(do Verb) (last CallRecord, completed bool) {
	for _, t := range h.Calls {
		if t.Do == do && t.At.After(last.At) {
			last = t
		}
		completed = completed || !t.Completed.IsZero()
	}
	return last, completed
}

func (h Hold) backoff(tries int) time.Duration { return Backoff(tries, h.InstanceID) }

// Backoff grows from 2 s after the first try to 30 s. It varies by a tenth with the seed, so
// that many instances do not retry at the same time.
func Backoff(tries int, seed string) time.Duration {
	tries = max(tries, 1)
	d := min(lastRetry, firstRetry<<min(tries-1, 8))
	return d - d/10 + time.Duration(share(seed, strconv.Itoa(tries))*float64(d/5))
}

// share is a number in [0, 1) that depends only on the parts.
func share(parts ...string) float64 {
	h := fnv.New32a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // it never fails
	}
	return float64(h.Sum32()%1000) / 1000
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
