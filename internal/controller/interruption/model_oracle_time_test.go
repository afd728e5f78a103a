package interruption

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// beginning is the earliest time of the action; zero: now.
func (c case_) beginning(v *verdict) time.Time {
	if firm(v.deadline) || v.notice.Kind == notice.KindAutoScalingTermination || v.notice.Kind == notice.KindRequested {
		return time.Time{}
	}
	hasNotBefore, notBefore := v.rule.NotBefore != nil, time.Hour
	if hasNotBefore {
		notBefore = v.rule.NotBefore.Duration
	}
	window := v.rule.Window
	var at time.Time
	switch {
	case v.deadline == nil && window == nil:
	case v.deadline == nil:
		at = opening(window, c.now)
	case window == nil:
		at = v.deadline.Time.Add(-notBefore)
	default:
		at = c.inWindow(window, v.deadline.Time.Time, notBefore, hasNotBefore)
	}
	if !at.After(c.now) {
		return time.Time{}
	}
	return at
}

// inWindow is when a window allows an action with a soft deadline to begin.
func (c case_) inWindow(w *v1beta1.Window, deadline time.Time, notBefore time.Duration, hasNotBefore bool) time.Time {
	from, onTime := c.now, deadline.Add(-time.Hour)
	if hasNotBefore {
		from = latest(c.now, deadline.Add(-notBefore))
	}
	at := latest(from, opening(w, from))
	open := !opening(w, from).After(c.now)
	enough := hasNotBefore && notBefore <= time.Hour && at.Before(deadline) // the policy says that this is enough
	if open || enough || !at.After(onTime) {
		return at
	}
	return deadline.Add(-min(notBefore, time.Hour))
}

// opening is the start of the window that is open at a time, or else of the next one. All
// schedules of the model open at multiples of ten minutes.
func opening(w *v1beta1.Window, at time.Time) time.Time {
	opens := map[string]func(time.Time) bool{
		"0 * * * *":    func(t time.Time) bool { return t.Minute() == 0 },
		"*/10 * * * *": func(t time.Time) bool { return t.Minute()%10 == 0 },
		"0 2 * * *":    func(t time.Time) bool { return t.Hour() == 2 && t.Minute() == 0 },
	}[w.Schedule]
	const grid = 10 * time.Minute
	at = at.UTC().Add(-w.Duration.Duration).Truncate(grid).Add(grid)
	for !opens(at) {
		at = at.Add(grid)
	}
	return at
}

// extended is the deadline while Lifeboat sends heartbeats for a lifecycle hook: an hour from
// the start of the drain, or from the first notice if that was earlier. Heartbeats that fail three times
// in a row extend nothing.
func (c case_) extended(from time.Time, notices []v1beta1.Notice, stands *v1beta1.Deadline) *v1beta1.Deadline {
	a := c.record.Status.LifecycleHooks
	if a == nil || len(a.Hooks) == 0 || a.WaitingSince == nil {
		return stands
	}
	for _, n := range notices {
		if n.Kind == notice.KindAutoScalingTermination && (from.IsZero() || n.ReceivedTime.Time.Before(from)) {
			from = n.ReceivedTime.Time
		}
	}
	at := from.Add(time.Hour)
	if a.EndTime != nil && a.EndTime.Time.Before(at) {
		at = a.EndTime.Time
	}
	if end := a.ExpiryTime; end != nil && a.FailedHeartbeats > 2 && end.Add(-10*time.Second).Before(at) {
		at = end.Add(-10 * time.Second)
	}
	switch {
	case firm(stands) && (a.RetainOnAbandon || stands.Time.Time.Before(at)):
		return stands
	case a.RetainOnAbandon:
		return deadlineAt(at.Truncate(time.Second), v1beta1.DeadlineSoft)
	}
	return deadlineAt(at.Truncate(time.Second), v1beta1.DeadlineHard)
}

// takenOut is the verdict for an instance that was detached from its Auto Scaling group: it is
// drained and terminated even if its notices are withdrawn. It has an hour from then if nothing
// else ends the drain.
func (c case_) takenOut(v verdict) verdict {
	d := c.record.Status.Drain
	if d == nil || d.Replacement == nil || d.Replacement.Group == "" || v.instanceGone ||
		d.Replacement.DetachTime == nil && d.Replacement.Phase != v1beta1.ReplacementOrdered ||
		v.drainsNow() && v.deadline != nil {
		return v
	}
	if !v.drains() {
		v.action = v1beta1.ActionDrain
	}
	v.withdrawn, v.awaits, v.notBefore, v.proceedsAt = false, false, time.Time{}, time.Time{}
	if v.deadline == nil || v.deadline.Type != v1beta1.DeadlineHard {
		v.deadline = deadlineAt(d.Replacement.OrderTime.Add(time.Hour).Truncate(time.Second), v1beta1.DeadlineHard)
	}
	return v
}
