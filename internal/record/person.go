package record

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// maxClockSkew is how far the clock of the person who approves or holds may be ahead.
const maxClockSkew = 5 * time.Minute

// counted returns a person's action, or nil if its time lies in the future. Otherwise one
// approval could approve every later interruption of the same instance.
func counted(a *v1beta1.UserAction, now time.Time) *v1beta1.UserAction {
	if a == nil || a.Time.After(now.Add(maxClockSkew)) {
		return nil
	}
	return a
}
