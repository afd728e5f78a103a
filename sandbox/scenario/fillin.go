package scenario

import (
	"fmt"
	"regexp"
	"time"
)

var (
	placeholder = regexp.MustCompile(`\$\{[^}\n]*\}?`)
	cronFormat  = regexp.MustCompile(`^\$\{cron \+([0-9a-z.]+)\}$`)
)

// fillIn replaces ${cron +20s} by cron fields: the first full minute in UTC that is at least so far
// after now. It returns that minute, or zero if the text has no placeholder.
func fillIn(text []byte, now time.Time) (filled []byte, opens time.Time, err error) {
	first := ""
	filled = placeholder.ReplaceAllFunc(text, func(found []byte) []byte {
		var ahead time.Duration
		m := cronFormat.FindSubmatch(found)
		switch {
		case m == nil || duration(&ahead)(string(m[1])) != nil:
			err = fmt.Errorf("unknown placeholder %q: write one such as ${cron +20s}", found)
			return found
		case first != "" && first != string(found):
			err = fmt.Errorf("%s opens another window than %s: a scenario has at most one", found, first)
			return found
		}
		first, opens = string(found), firstMinute(now.Add(ahead))
		return fmt.Appendf(nil, "%d %d %d %d *", opens.Minute(), opens.Hour(), opens.Day(), int(opens.Month()))
	})
	return filled, opens, err
}

// firstMinute is the first full minute at t or after.
func firstMinute(t time.Time) time.Time {
	wholeNumber := t.UTC().Truncate(time.Minute)
	if wholeNumber.Before(t) {
		wholeNumber = wholeNumber.Add(time.Minute)
	}
	return wholeNumber
}
