package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
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

// openingAt returns the opening that counts at a moment: that of the window
// which is open then, else the next; zero if it never opens again. The schedule
// is read on the zone's wall clock, as cron does: an opening in an hour that
// daylight saving skips does not take place that day, and one in an hour that
// comes twice takes place twice.
func (w window) openingAt(at time.Time) time.Time {
	return w.schedule.Next(at.In(w.location).Add(-w.duration))
}

// understand reads a window, or says what to write instead.
func parseWindow(in v1alpha1.Window) (window, problems) {
	w := window{duration: in.Duration.Duration, location: time.UTC}
	var found problems
	if w.duration < shortestWindow || w.duration > longestWindow {
		found.add(windowDuration)
	}
	location, err := time.LoadLocation(in.TimeZone)
	if err != nil || in.TimeZone == "Local" { // the zone of whatever machine it runs on
		found.add(windowZone, in.TimeZone)
	} else {
		w.location = location
	}
	w.schedule, err = parse(in.Schedule)
	if err != nil {
		found.add(windowSchedule, in.Schedule, err)
		return w, found
	}
	// Any moment does: Next looks five years ahead.
	if w.schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		found.add(windowNeverComes, in.Schedule)
	}
	return w, found
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
