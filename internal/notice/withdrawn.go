package notice

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// AllWithdrawn reports whether there are notices received after since, and all of them are
// withdrawn.
func AllWithdrawn(notices []v1alpha1.Notice, since time.Time) bool {
	withdrawn := false
	for i := range notices {
		switch {
		case counts(&notices[i], since):
			return false
		case isLater(&notices[i], since):
			withdrawn = true
		}
	}
	return withdrawn
}
