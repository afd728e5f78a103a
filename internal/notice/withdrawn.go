package notice

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// AllWithdrawn reports whether there are notices received after since, and all of them are
// withdrawn.
func AllWithdrawn(notices []v1beta1.Notice, since time.Time) bool {
	withdrawn := false
	for i := range notices {
		switch {
		case !isLater(&notices[i], since):
		case !notices[i].Withdrawn:
			return false
		default:
			withdrawn = true
		}
	}
	return withdrawn
}

func isLater(n *v1beta1.Notice, since time.Time) bool {
	return since.IsZero() || n.ReceivedTime.Time.After(since)
}
