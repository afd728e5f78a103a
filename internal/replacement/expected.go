package replacement

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// BootTime is how long a replacement is expected to take from its order until it is Ready, if
// no other of its pool says more.
const BootTime = time.Minute

// ExpectedAt returns when a replacement that pods wait for is expected to be Ready; zero: they
// wait for none. It takes as long as the newest one of its pool took. Without capacity there is
// none before the deadline. claims are the NodeClaims of replacements.
func ExpectedAt(s *Status, d *v1beta1.Deadline, claims []*Claim) time.Time {
	if _, waits := Gate(s, d); !waits {
		return time.Time{}
	}
	switch {
	case s.Phase == v1beta1.ReplacementFailed:
		return d.Time.Time // Gate holds pods only before a firm deadline
	case s.Phase == v1beta1.ReplacementRetrying && s.OrderTime != nil:
		return RetryAt(s, d).Add(bootTime(s.Name, claims))
	case s.Phase != v1beta1.ReplacementQueued && s.OrderTime != nil:
		return s.OrderTime.Add(bootTime(s.Name, claims))
	case s.StartTime != nil:
		return s.StartTime.Add(BootTime)
	}
	return time.Time{}
}

// bootTime returns how long the newest Ready replacement of the same pool took.
func bootTime(name string, claims []*Claim) time.Duration {
	pool := ""
	for _, c := range claims {
		if c.Name == name {
			pool = c.Pool()
		}
	}
	var newest *Claim
	for _, c := range claims {
		if pool != "" && c.Pool() == pool && c.BootTime > 0 && (newest == nil || c.CreationTime.After(newest.CreationTime)) {
			newest = c
		}
	}
	if newest == nil {
		return BootTime
	}
	return newest.BootTime
}
