package terminal

import (
	"fmt"
	"time"
)

// Offset formats a time relative to the start of a timeline: "+0.4s", "+12.0s",
// "+1m52s", "-3.1s". It shows tenths only below one minute.
func Offset(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	if tenths := d.Round(100 * time.Millisecond); tenths < time.Minute {
		return fmt.Sprintf("%s%.1fs", sign, tenths.Seconds())
	}
	return sign + Duration(d)
}

// Duration formats a duration in whole seconds: "45s", "1m52s", "2m", "3h5m",
// "2d4h".
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	seconds := int(d.Round(time.Second).Seconds())
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 60*60:
		return two(seconds/60, "m", seconds%60, "s")
	case seconds < 24*60*60:
		return two(seconds/3600, "h", seconds%3600/60, "m")
	default:
		return two(seconds/86400, "d", seconds%86400/3600, "h")
	}
}

// Relative formats a time relative to now: "in 1m52s", "3s ago", "now".
func Relative(t, now time.Time) string {
	switch d := t.Sub(now).Round(time.Second); {
	case d == 0:
		return "now"
	case d > 0:
		return "in " + Duration(d)
	default:
		return Duration(-d) + " ago"
	}
}

func two(big int, bigUnit string, small int, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d%s", big, bigUnit)
	}
	return fmt.Sprintf("%d%s%d%s", big, bigUnit, small, smallUnit)
}
