package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Bounds of a window's duration; the CRD has the same.
const (
	shortestWindow = time.Minute
	longestWindow  = 7 * 24 * time.Hour
)

// window is a v1alpha1.Window that was understood.
type window struct {
	schedule cron.Schedule
	duration time.Duration
	location *time.Location
}

// openingAt returns the opening that counts at the moment: that of the window
// which is open then, else the next; zero if it never opens again. The schedule
// is read on the zone's wall clock, as cron does: an opening in an hour that
// daylight saving skips does not take place that day, and one in an hour that
// comes twice takes place twice.
func (w window) openingAt(now time.Time) time.Time {
	return w.schedule.Next(now.In(w.location).Add(-w.duration))
}

// start is when an action may begin, and why not now.
type start struct {
	notBefore time.Time // zero: now
	because   string    // goes on a sentence; empty where there is no window
}

// lead is how long before a soft deadline what is planned for it begins, where
// no window says otherwise; from then on the deadline counts as hard. It is
// long enough for pods that stop in turn, and short enough for a change that is
// due in two weeks not to cost anything today.
const lead = time.Hour

// harden makes the deadline of a scheduled change a hard one once it is near:
// nobody moves it any more, and a preStop hook that runs beats a power cut. Where
// the instance only loses its network or power for a moment, its pods need not
// die for it.
func harden(n v1alpha1.Notice, deadline *v1alpha1.Deadline, now time.Time) *v1alpha1.Deadline {
	if deadline == nil || deadline.Type == v1alpha1.DeadlineHard || now.Before(deadline.Time.Add(-lead)) || !disturbs(n) {
		return deadline
	}
	return notice.At(deadline.Time.Time, v1alpha1.DeadlineHard)
}

// begin says when an action may begin, and why. A hard deadline waits for no
// window. What has a soft one begins in its window, or, if none opens in time,
// an hour before the deadline: to begin outside of a window is bad, to be late
// is worse.
func begin(w *window, deadline *v1alpha1.Deadline, now time.Time) start {
	hard := deadline != nil && deadline.Type == v1alpha1.DeadlineHard
	switch {
	case w == nil && (deadline == nil || hard):
		return start{}
	case w == nil:
		return before(deadline, now, "")
	case hard:
		return start{because: "; its window does not count, since the deadline is hard or near"}
	}
	opening := w.openingAt(now)
	switch {
	case !opening.After(now) && !opening.IsZero():
		return start{because: fmt.Sprintf("; its window is open until %s", wall(opening.Add(w.duration)))}
	case deadline != nil && (opening.IsZero() || !opening.Before(deadline.Time.Time)):
		return before(deadline, now, ", since its window does not open before")
	case opening.IsZero():
		return start{because: "; it begins at once, since its window never opens"}
	}
	return start{notBefore: opening, because: fmt.Sprintf("; it begins when its window opens at %s", wall(opening))}
}

// before begins an hour before the deadline.
func before(deadline *v1alpha1.Deadline, now time.Time, because string) start {
	at := deadline.Time.Add(-lead)
	if !at.After(now) {
		return start{because: "; the deadline is near" + because}
	}
	return start{notBefore: at, because: fmt.Sprintf("; it begins at %s, an hour before the deadline%s", wall(at), because)}
}

// understand reads a window, or says what to write instead.
func understand(in v1alpha1.Window) (window, []string) {
	w := window{duration: in.Duration.Duration, location: time.UTC}
	var problems []string
	if w.duration < shortestWindow || w.duration > longestWindow {
		problems = append(problems, fmt.Sprintf("window duration %s is not between 1m and 168h: write one such as 2h", in.Duration.Duration))
	}
	location, err := time.LoadLocation(in.TimeZone)
	if err != nil || in.TimeZone == "Local" {
		problems = append(problems, fmt.Sprintf("time zone %q is not an IANA name: write UTC or one such as Europe/Berlin", in.TimeZone))
	} else {
		w.location = location
	}
	w.schedule, err = parse(in.Schedule)
	if err != nil {
		return w, append(problems, fmt.Sprintf("schedule %q is not one: %v; write minute hour day-of-month month day-of-week, such as \"0 2 * * *\" for 02:00 every day", in.Schedule, err))
	}
	// Any moment does: Next looks five years ahead.
	if w.schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		problems = append(problems, fmt.Sprintf("schedule %q never comes: no month has such a day; write one that does, such as \"0 2 1 * *\" for the first of every month", in.Schedule))
	}
	return w, problems
}

// parse reads five cron fields and nothing else: not @daily, nor a time zone of
// its own. The parser is given them with single spaces, since it looks for a
// space after TZ= without checking that there is one.
func parse(schedule string) (cron.Schedule, error) {
	fields := strings.Fields(schedule)
	if len(fields) != 5 {
		return nil, fmt.Errorf("it has %d fields, not 5", len(fields))
	}
	if strings.Contains(fields[0], "=") {
		return nil, fmt.Errorf("%s does not belong in it (use timeZone)", fields[0])
	}
	return cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(strings.Join(fields, " "))
}

// wall writes a moment on the clock of its zone.
func wall(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }
