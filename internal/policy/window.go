package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Bounds of a window's duration; the CRD has the same.
const (
	shortestWindow = time.Minute
	longestWindow  = 7 * 24 * time.Hour
)

// window is a parsed v1beta1.Window.
type window struct {
	schedule cron.Schedule
	duration time.Duration
	location *time.Location
}

// clockChange is longer than any change of the clock by daylight saving.
const clockChange = 2 * time.Hour

// openingAt returns the opening of the window that is open at a time, or else the next one; zero
// if it never opens again. Like cron, it uses the zone's local time. An opening in an hour that
// daylight saving skips is as much later as the clock jumps, and one in a repeated hour occurs twice.
func (w window) openingAt(at time.Time) time.Time {
	closed := at.In(w.location).Add(-w.duration)
	// Next finds an opening that was moved only from a time before the clock changes.
	opening := w.schedule.Next(closed.Add(-clockChange))
	for !opening.IsZero() && !opening.After(closed) {
		opening = w.schedule.Next(opening)
	}
	return opening
}

// parseWindow parses a window, or says what to write instead.
func parseWindow(in v1beta1.Window) (window, problems) {
	w := window{duration: in.Duration.Duration, location: time.UTC}
	var found problems
	if w.duration < shortestWindow || w.duration > longestWindow {
		found.add(windowDuration)
	}
	location, err := time.LoadLocation(in.TimeZone)
	if err != nil || in.TimeZone == "Local" { // the zone of the machine that it runs on
		found.add(windowZone, in.TimeZone)
	} else {
		w.location = location
	}
	w.schedule, err = parse(in.Schedule)
	if err != nil {
		found.add(windowSchedule, in.Schedule, err)
		return w, found
	}
	// Any time works: Next looks five years ahead.
	if w.schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		found.add(windowNeverComes, in.Schedule)
	}
	return w, found
}

// parse accepts only five cron fields: no @daily, and no time zone. As in CronJobs, a schedule with a
// day of the month and a day of the week matches on either.
func parse(schedule string) (cron.Schedule, error) {
	if n := len(strings.Fields(schedule)); n != 5 {
		return nil, fmt.Errorf("it has %d fields, not 5", n)
	}
	if zone, _, is := strings.Cut(strings.Fields(schedule)[0], "="); is {
		return nil, fmt.Errorf("%s= does not belong in it (use timeZone)", zone)
	}
	return cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).Parse(schedule)
}

// wall formats a time in its zone.
func wall(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }
