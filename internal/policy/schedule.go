package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// lead is how long before a soft deadline the action begins by default; from then on the
// deadline counts as hard. It is long enough for pods that stop one after the other, and short
// enough for a change in two weeks to cost nothing today.
const lead = time.Hour

// terminationTime is how long a drain before a termination may take without another deadline: as
// long as for a spot interruption. Otherwise one PodDisruptionBudget could keep a sick node
// forever.
const terminationTime = 2 * time.Minute

// hookTime is how long a drain may take by default while Lifeboat sends heartbeats for the
// group's lifecycle hook.
const hookTime = time.Hour

// inTime begins when the window first opens from notBefore on, or else without the window.
func (c match) inTime(deadline *v1beta1.Deadline, now time.Time) startTime {
	from, last := now, deadline.Time.Add(-lead)
	if c.notBefore != 0 {
		from = latest(now, deadline.Time.Add(-c.notBefore))
		if c.notBefore <= lead { // the policy says that this much is enough
			last = deadline.Time.Add(-1)
		}
	}
	opening := c.window.openingAt(from)
	isOpen := !opening.IsZero() && !opening.After(now)
	if !isOpen && (opening.IsZero() || latest(opening, from).After(last)) {
		return c.before(deadline, c.lead(), now, ", since its window does not open in time")
	}
	return c.whenOpen(from, now)
}

// lead is how long before a soft deadline the action begins at the latest.
func (c match) lead() time.Duration {
	return min(cmp.Or(c.notBefore, lead), lead)
}

// whenOpen begins when the window first opens from a time on.
func (c match) whenOpen(from, now time.Time) startTime {
	opening := c.window.openingAt(from)
	switch {
	case opening.IsZero():
		return startTime{because: "it begins at once, since its window never opens"}
	case opening.After(from):
		return startTime{notBefore: opening, because: "it begins when its window opens at " + wall(opening)}
	case from.After(now):
		from = from.In(c.window.location)
		return startTime{notBefore: from, because: fmt.Sprintf("it begins at %s, %s before the deadline, within its window", wall(from), span(c.notBefore))}
	}
	return startTime{because: "its window is open until " + wall(opening.Add(c.window.duration))}
}

// before begins d before the deadline.
func (c match) before(deadline *v1beta1.Deadline, d time.Duration, now time.Time, because string) startTime {
	at := deadline.Time.Add(-d)
	switch {
	case !at.After(now) && d > lead:
		return startTime{because: fmt.Sprintf("the deadline is less than %s away", span(d))}
	case !at.After(now):
		return startTime{because: "the deadline is near" + because}
	}
	return startTime{notBefore: at, because: fmt.Sprintf("it begins at %s, %s before the deadline%s", wall(at), span(d), because)}
}

// extended is the deadline of a drain during which Lifeboat sends heartbeats. It is hard,
// because the hook is completed then and the instance terminates with what is left on it. It is
// soft if the group retains the instance.
func (c match) extended(f Facts, begun time.Time, notices []v1beta1.Notice, stands *v1beta1.Deadline) *v1beta1.Deadline {
	if f.Held && f.ExtendedUntil.IsZero() {
		return stands
	}
	at := latest(terminationSince(begun, notices), f.Released).Add(cmp.Or(c.drainTimeout, hookTime))
	if !f.ExtendedUntil.IsZero() && (f.Held || f.ExtendedUntil.Before(at)) {
		at = f.ExtendedUntil
	}
	typ := v1beta1.DeadlineHard
	if f.Retained {
		typ = v1beta1.DeadlineSoft
	}
	if notice.IsFirm(stands) && (f.Retained || stands.Time.Time.Before(at)) {
		return stands
	}
	return notice.At(whole(at), typ)
}

// terminationSince is when the drain began, or when the first notice of the group's
// termination was received, whichever is earlier.
func terminationSince(begun time.Time, notices []v1beta1.Notice) time.Time {
	since := begun
	for i := range notices {
		if at := notices[i].ReceivedTime.Time; isTermination(notices[i]) && !notices[i].Withdrawn && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// whole truncates a time to seconds, as the API stores it. Otherwise the value computed in each
// pass would differ from the stored one and be written each time.
func whole(at time.Time) time.Time { return at.Truncate(time.Second) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// span formats a duration for people: "an hour", "90m", "24h".
func span(d time.Duration) string {
	switch {
	case d == time.Hour:
		return "an hour"
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// disturbs reports whether a scheduled change stops the workloads of the instance. A code that
// this release does not know has no action, and is only reported.
func disturbs(n v1beta1.Notice) bool {
	return n.Kind == notice.KindScheduledChange && n.InstanceAction != "" && n.InstanceAction != notice.ActionMaintain
}

// harden makes the deadline of a scheduled change hard once it is near and nothing is left to
// wait for: it is no longer moved, and a graceful stop is better than a power cut. If the
// instance only loses its network or power for a moment, its pods need not be killed for it. A date that
// has passed while the instance runs is soft again: nothing says when the change will take place.
func harden(n v1beta1.Notice, deadline *v1beta1.Deadline, starts startTime, now time.Time) *v1beta1.Deadline {
	if deadline == nil || deadline.Type != v1beta1.DeadlineSoft || !starts.notBefore.IsZero() || !isNear(deadline, now) || !disturbs(n) {
		return deadline
	}
	return notice.At(deadline.Time.Time, v1beta1.DeadlineHard)
}

// isNear reports whether a planned date is less than an hour away, and has not passed.
func isNear(planned *v1beta1.Deadline, now time.Time) bool {
	return !now.Before(planned.Time.Add(-lead)) && now.Before(planned.Time.Time)
}

// ending is the deadline of a notice that the instance is shutting down or gone. During the
// shutdown it is an estimate, even if the record says Hard: records of earlier releases have the
// time of the notice there.
func ending(n v1beta1.Notice) *v1beta1.Deadline {
	d := notice.ShutdownDeadline(n.InstanceState, issued(n))
	if n.Deadline != nil && n.Deadline.Type == d.Type {
		return n.Deadline
	}
	return d
}

// issued is when the cloud issued the notice, or else when it was received.
func issued(n v1beta1.Notice) time.Time {
	if n.Time.IsZero() {
		return n.ReceivedTime.Time
	}
	return n.Time.Time
}

// riskOver is when a node that is only marked is restored.
func riskOver(d Decision) time.Time {
	if d.Deadline != nil || (d.Action != v1beta1.ActionNotify && d.Action != v1beta1.ActionCordon) {
		return time.Time{}
	}
	return issued(d.Notice).Add(notice.AtRiskFor)
}
